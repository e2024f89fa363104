package conform

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/host"
	"napisim/scenarios/recording"
	"napisim/scenarios/recording/ftrace"
)

// buildUDPSender makes the process that sends datagrams, one a call.
func (b *bench) buildUDPSender() {
	seg := segment()
	b.startSender(func(c *cpu.Core) {
		c.Spend(model.StageUDPSend)
		c.BHDisable()
		if b.veth != nil {
			b.veth.Release(c, &seg.Frame)
		} else {
			b.na.Xmit(c, seg)
		}
		c.BHEnable()
	})
}

// startSender makes a process that sends by the clock. When its next bursts are due tells
// the timer that woke it for the second one; its first frame comes later than that by what
// has to be done once.
func (b *bench) startSender(send func(*cpu.Core)) {
	first := b.firstSend + b.shift
	cfg := host.PacerConfig{
		Count: b.rec.Offered, Burst: max(b.rec.Rate.Burst, 1), Gap: ns(b.rec.Rate.Every), Prepare: b.prices.send,
	}
	if cfg.Gap == 0 {
		cfg.Burst = cfg.Count
	}
	start := first
	if due, ok := b.secondBurst(); ok {
		start = min(due-b.rec.Rate.Every, first)
	}
	cfg.Start, cfg.First = b.at(start), ns(first-start)
	// It was forked for this: unlike the tasks that have slept it has no credit.
	b.machine.NewTask(b.machine.Cores[0], "nt", cpu.TaskConfig{}, host.Pacer(cfg, send)).WakeFromDevice()
}

// secondBurst returns when the second burst was due. All are at the same distance, so
// the timer that was least late tells.
func (b *bench) secondBurst() (at int64, ok bool) {
	gap := b.rec.Rate.Every
	if gap == 0 {
		return 0, false
	}
	for _, t := range b.in.Timers {
		switch {
		case t.At <= b.firstSend || t.Woke != b.sender:
		case !ok:
			at, ok = t.At, true
		default:
			at -= max(gap/2-(t.At-at+gap/2)%gap, 0)
		}
	}
	return at - timerToWakeup, ok
}

// timerToWakeup is how long after it is due a timer wakes a task.
const timerToWakeup = 1100

// firstSign returns the first event that tells of a frame, nil if none does: the interrupt
// of a device, the raise for it, or that it was received.
func firstSign(r *recording.Recording) *ftrace.Event {
	for i := range r.Events {
		e := &r.Events[i]
		switch e.Name {
		case "irq_handler_entry":
			name, _ := e.Field("name")
			if dev, _ := r.DeviceOf(name); dev == "" {
				continue
			}
		case "softirq_raise":
			if vec, _ := e.Field("action"); vec != "NET_RX" && vec != "NET_TX" {
				continue
			}
		case "netif_receive_skb":
			if dev, _ := e.Field("dev"); dev != r.RxDevice() {
				continue
			}
		case "napisim_dropped": // the same of a trimmed recording
			if n, _ := e.Int("netif_receive_skb"); n == 0 {
				continue
			}
		default:
			continue
		}
		return e
	}
	return nil
}
