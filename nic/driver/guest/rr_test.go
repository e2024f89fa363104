package guest

import (
	"testing"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/nic/emulated"
)

// rr is a request and a response between two processes of the guest, over and over. A
// response carries the acknowledgement, so each way has one frame. The processes run
// where the softirq that has brought a frame is over.
func (r *rig) rr(n int) {
	var client, server *cpu.Task
	r.stack.arrived = func(c *cpu.Core, dev string) {
		if dev == "nb" {
			c.Wake(server)
		} else {
			c.Wake(client)
		}
	}
	wait := func(t *cpu.Task, d *Netdev, frames int) {
		for t.Core().Look(); d.rx.Taken() < int64(frames); t.Core().Look() {
			t.Sleep()
		}
	}
	send := func(c *cpu.Core, d *Netdev) {
		c.Work(10 * us)
		c.BHDisable()
		d.Xmit(c, &model.Segment{Frame: model.Frame{Proto: model.TCP, Len: 67, Payload: 1}})
		c.BHEnable()
	}
	server = r.m.NewTask(r.m.Cores[0], "server", cpu.TaskConfig{}, func(t *cpu.Task) {
		for i := range n {
			wait(t, r.nb, i+1)
			send(t.Core(), r.nb)
		}
	})
	client = r.m.NewTask(r.m.Cores[0], "client", cpu.TaskConfig{}, func(t *cpu.Task) {
		for i := range n {
			send(t.Core(), r.na)
			wait(t, r.na, i+1)
		}
	})
	r.at(ms, server.WakeFromDevice)
	r.at(2*ms, client.WakeFromDevice)
}

// TestRecordedRR has the cycle of a request and its response that k61 and k612 show from
// some dozen transactions on, when byte queue limits stop nothing any more. The
// interrupt of the receiver comes first, as its number is the higher, and a NAPI that
// has only transmitted is polled with work 0; that of an e1000 is the one that also
// receives.
func TestRecordedRR(t *testing.T) {
	for _, test := range []struct {
		name   string
		driver string
		device emulated.Config
		cycle  []string
	}{
		{"e1000-tcprr1-nomit", "e1000", emulated.Config{RXRing: 256, TXRing: 256, NoMitigation: true}, []string{
			"irq nb", "raise h NET_RX", "irq na", "raise h NET_RX", "entry NET_RX", "poll nb 1", "poll na 0", "exit NET_RX",
			"irq nb", "raise h NET_RX", "irq na", "raise h NET_RX", "entry NET_RX", "poll nb 0", "poll na 1", "exit NET_RX",
		}},
		{"virtio-tcprr1", "virtio", emulated.Config{RXRing: 256, TXRing: 256}, []string{
			"irq virtio1-input.0", "raise h NET_RX", "irq virtio0-output.0", "raise h NET_RX", "entry NET_RX", "poll nb 1", "poll na 0", "exit NET_RX",
			"irq virtio1-output.0", "raise h NET_RX", "irq virtio0-input.0", "raise h NET_RX", "entry NET_RX", "poll nb 0", "poll na 1", "exit NET_RX",
		}},
	} {
		for _, kernel := range []string{"k61", "k612"} {
			s := ofDriver(kernel, test.driver)
			s.device, s.config.BQLMin = test.device, 0
			r := newRig(s)
			r.rr(60)
			r.run(t, 20*ms)
			if r.na.rx.Taken() != 60 || r.nb.rx.Taken() != 60 {
				t.Errorf("%s-%s: %d requests, %d responses of 60", kernel, test.name, r.nb.rx.Taken(), r.na.rx.Taken())
			}
			got := r.happenings()
			got = got[len(got)-10*len(test.cycle):]
			for i, h := range got {
				if want := test.cycle[i%len(test.cycle)]; h.what != want {
					t.Errorf("%s-%s: %d: %q, recorded is %q", kernel, test.name, i, h.what, want)
				}
			}
		}
	}
}
