package conform

import (
	"errors"
	"fmt"

	"napisim/model/cpu"
	"napisim/nic/driver"
	"napisim/nic/driver/virtual"
	"napisim/scenarios/spec"
)

// buildTap makes a tap device. Whether it has IFF_NAPI its writer says.
func (b *bench) buildTap(h driver.Host) error {
	if len(b.rec.Devices) != 1 {
		return fmt.Errorf("%d network devices instead of one", len(b.rec.Devices))
	}
	dev := &b.rec.Devices[0]
	cfg := virtual.TunConfig{Name: dev.Name, ID: tapID, Write: b.behaviours[spec.TunWrite], RPS: steering(dev)}
	napi, _ := b.rec.Sender.Int("napi")
	cfg.NAPI = napi != 0
	var err error
	if cfg.GRO, err = b.gro(dev); err != nil {
		return fmt.Errorf("%s: %w", dev.Name, err)
	}
	if err := errors.Join(cfg.Validate()...); err != nil {
		return fmt.Errorf("%s: %w", dev.Name, err)
	}
	b.tap = virtual.NewTun(cfg, h)
	return nil
}

// tapID is the id of the device's NAPI. What it is in a recording is not told.
const tapID = 0x2001

// buildTapWriter makes the process that writes frames to the tap device, one a call.
func (b *bench) buildTapWriter() {
	seg := segment()
	b.startSender(func(c *cpu.Core) { b.tap.Write(c, &seg.Frame, false) })
}
