package conform

import (
	"fmt"

	"napisim/model/cpu"
	"napisim/nic/driver"
	"napisim/nic/driver/virtual"
	"napisim/scenarios/recording"
	"napisim/scenarios/recording/input"
	"napisim/softirq"
)

// buildVeth makes the direction of a veth pair in which frames go. By the NAPI of the
// receiving end they go only if the sending end has TSO off.
func (b *bench) buildVeth(h driver.Host) error {
	if len(b.rec.Devices) != 2 {
		return fmt.Errorf("%d network devices instead of two", len(b.rec.Devices))
	}
	tx, rx := &b.rec.Devices[0], &b.rec.Devices[1]
	table, err := b.gro(rx)
	if err != nil {
		return fmt.Errorf("%s: %w", rx.Name, err)
	}
	b.veth = virtual.NewVeth(virtual.VethConfig{
		Name: rx.Name, Peer: tx.Name, ID: vethID, GRO: table,
		SenderTSO: tx.Features[tso], RPS: steering(rx),
	}, h)
	return nil
}

const (
	groFeature = "generic-receive-offload"
	tso        = "tcp-segmentation-offload"
)

// vethNAPI reports whether the packets of a veth pair go by its NAPI, not by the backlog.
func vethNAPI(r *recording.Recording) bool {
	return len(r.Devices) == 2 && r.Devices[1].Features[groFeature] && !r.Devices[0].Features[tso]
}

// vethID is the id of the receiving end's NAPI. What it is in a recording is not told.
const vethID = 0x2001

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
