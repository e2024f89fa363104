// Package driver is where a device meets the kernel, as in Linux: interrupt
// handlers, NAPI polls, refill, transmission, and the recycling of receive pages
// (net/core/page_pool.c).
//
// Two drivers are models of a kind. LAN966x has one vector and one NAPI for
// receive and transmit, refills after its poll and rings once per descriptor
// (drivers/net/ethernet/microchip/lan966x/lan966x_fdma.c, v6.4). Generic has a
// vector and a NAPI for each direction and refills in batches inside its poll, as
// ixgbe and i40e do.
package driver
