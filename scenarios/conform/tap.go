package conform

import (
	"errors"
	"fmt"

	"napisim/model/cpu"
	"napisim/model/host"
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

// startSender makes a process that sends by the clock.
func (b *bench) startSender(send func(*cpu.Core)) {
	cfg := host.PacerConfig{
		Start: b.at(b.firstSend + b.shift), Count: b.rec.Offered, Burst: max(b.rec.Rate.Burst, 1),
		Gap: ns(b.rec.Rate.Every), Prepare: b.prices.send,
	}
	if b.rec.Rate.Every == 0 {
		cfg.Burst = cfg.Count
	}
	b.machine.NewTask(b.machine.Cores[0], "nt", cpu.TaskConfig{Sleeper: true}, host.Pacer(cfg, send)).WakeFromDevice()
}
