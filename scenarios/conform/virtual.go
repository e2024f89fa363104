package conform

import (
	"errors"
	"fmt"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/host"
	"napisim/model/host/duplex"
	"napisim/nic/driver"
	"napisim/nic/driver/virtual"
	"napisim/scenarios/recording"
	"napisim/scenarios/recording/ftrace"
	"napisim/scenarios/recording/input"
	"napisim/scenarios/spec"
	"napisim/softirq"
	"napisim/softirq/stack"
)

// buildVeth makes both directions of a veth pair.
func (b *bench) buildVeth(h driver.Host) (err error) {
	if len(b.rec.Devices) != 2 {
		return fmt.Errorf("%d network devices instead of two", len(b.rec.Devices))
	}
	tx, rx := &b.rec.Devices[0], &b.rec.Devices[1]
	if b.veth, err = b.direction(tx, rx, vethID+1, h); err == nil {
		b.vethBack, err = b.direction(rx, tx, vethID, h)
	}
	return err
}

// direction makes one direction of a veth pair. By the NAPI of the receiving end packets
// go only if the sending end has TSO off.
func (b *bench) direction(tx, rx *recording.Device, id int, h driver.Host) (*virtual.Veth, error) {
	table, err := b.gro(rx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rx.Name, err)
	}
	return virtual.NewVeth(virtual.VethConfig{
		Name: rx.Name, Peer: tx.Name, ID: id, GRO: table, SenderTSO: tx.Features[tso], RPS: steering(rx),
	}, h), nil
}

const (
	groFeature = "generic-receive-offload"
	tso        = "tcp-segmentation-offload"
)

// vethNAPI reports whether the packets of a veth pair go by its NAPI, not by the backlog.
func vethNAPI(r *recording.Recording) bool {
	return len(r.Devices) == 2 && r.Devices[1].Features[groFeature] && !r.Devices[0].Features[tso]
}

// vethID is the id of the sending end's NAPI. What it is in a recording is not told.
const vethID = 0x2001

// vethWay is the way of a socket's packets through a veth pair. The skb that arrives is
// the one that was sent: its owner is told when IP takes it in (skb_orphan).
func vethWay(d *virtual.Veth) way {
	o := &orphans{}
	var p virtual.Packet
	return way{
		output: func(c *cpu.Core, out *duplex.Packet) {
			p = virtual.Packet{Segment: out.Segment, MSS: out.MSS, Truesize: out.Truesize}
			if out.Owner != nil {
				end := out.Seq + uint64(out.Payload)
				o.owned = append(o.owned, owned{end: end, size: out.Truesize, owner: out.Owner})
			}
			d.XmitSKB(c, &p)
		},
		input: func(s stack.Socket) stack.Socket {
			o.sock = s
			return o
		},
	}
}

// orphans is a socket behind ip_rcv, which tells the owners of skbs.
type orphans struct {
	sock  stack.Socket
	owned []owned // in the order of sending
}

// owned is an skb that its owner is charged for.
type owned struct {
	end   uint64
	size  int
	owner *duplex.Sock
}

// Receive implements stack.Socket.
func (o *orphans) Receive(c *cpu.Core, p *model.SKB) {
	c.Look()
	end := p.Frame.Seq + uint64(p.Payload)
	n := 0
	for ; n < len(o.owned) && o.owned[n].end <= end; n++ {
		o.owned[n].owner.WFree(c, o.owned[n].size)
	}
	o.owned = append(o.owned[:0], o.owned[n:]...)
	o.sock.Receive(c, p)
}

// netem is the queueing discipline of the sending end: its watchdog raises NET_TX, and
// that softirq lets out the frames of one slot. When and how many is replayed, as the
// frames were queued before the recording has anything to compare.
type netem struct {
	*bench
	slots []input.Slot // to come
	timer *cpu.HRTimer
}

// buildNetem lets the frames of the slots out.
func (b *bench) buildNetem() {
	n := &netem{bench: b, slots: b.in.Slots}
	n.timer = b.machine.Cores[0].NewHRTimer(func(*cpu.Core) { n.softnets[0].RaiseSoftirq(softirq.NetTX) })
	b.softnets[0].OpenSoftirq(softirq.NetTX, n.netTXAction)
	n.arm()
}

func (n *netem) arm() {
	if len(n.slots) == 0 {
		return
	}
	at := n.slots[0].Raise
	if at == 0 {
		at = n.slots[0].Entry
	}
	n.timer.Start(n.at(at + n.shift))
}

// netTXAction is net_tx_action with the dequeue function of netem.
func (n *netem) netTXAction() {
	if len(n.slots) == 0 {
		return
	}
	c, seg := n.machine.Cores[0], segment()
	for range n.slots[0].Frames {
		c.Work(n.prices.dequeue)
		n.veth.Release(c, &seg.Frame)
	}
	n.slots = n.slots[1:]
	n.arm()
}

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
