// Package virtual holds interfaces without hardware: tap devices, to which programs and
// vhost write frames (drivers/net/tun.c), and veth pairs (drivers/net/veth.c). What is
// written enters the stack of the same host, in the writer's context or through a
// backlog or a NAPI.
package virtual
