package conform

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/scenarios/recording"
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

// firstSign returns the instant of the first event that tells of a frame: the interrupt
// of a device, the raise for it, or that it was received.
func firstSign(r *recording.Recording) (at int64, ok bool) {
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
		default:
			continue
		}
		return e.At, true
	}
	return 0, false
}
