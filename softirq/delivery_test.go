package softirq

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"napisim/model"
	"napisim/sim"
	"napisim/sim/trace"
	"napisim/softirq/gro"
)

// This file tests when and in which order packets leave GRO for the stack.

// order returns what a run's lines tell of packets, in short: e for a packet that GRO gets,
// the number of segments for an skb that reaches the stack, | for the end of a poll.
func order(p *played) string {
	var b strings.Builder
	for i := range p.events {
		switch e := &p.events[i]; e.Point {
		case trace.NAPIGROReceiveEntry, trace.NAPIGROFragsEntry:
			b.WriteByte('e')
		case trace.NetifReceiveSKB:
			fmt.Fprintf(&b, " %d ", e.C)
		case trace.NAPIPoll:
			b.WriteString(" | ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// Correction C7, vectors G4 to G7: since v5.5 "complete" appends to the list and counts,
// and the stack sees it at the end of the poll, unless the count reaches 8.
func TestC7CompletedSuperframesWait(t *testing.T) {
	for _, c := range []struct {
		name, frames string
		segments     string // v5.11: the list counts segments
		single       string // v5.3
	}{
		{"G4: 3 full segments and a short one", "3 1448,1 500", "eeee 4 |", "eeee 4 |"},
		{"G5: superframe(3), then the ACK", "3 1448,1 0", "eeee 3 1 |", "eeee 3 1 |"},
		{"G5: 7 + 1 = 8: at once, in this order", "7 1448,1 0,1 1448", "eeeeeeee 7 1 e 1 |", "eeeeeeee 7 1 e 1 |"},
		{"7 + 2 ACKs and more behind", "6 1448,1 0,1 1448", "eeeeeeee 6 1 1 |", "eeeeeee 6 1 e 1 |"},
		{"8 segments at once", "7 1448,1 500,1 1448", "eeeeeeee 8 e 1 |", "eeeeeeee 8 e 1 |"},
		{"4 segments wait", "3 1448,1 500,1 1448", "eeeee 4 1 |", "eeee 4 e 1 |"},
	} {
		for form, want := range map[string]string{"skb_list_segments": c.segments, "single": c.single} {
			var b strings.Builder
			fmt.Fprintf(&b, "kernel gro_normal=%s\ntrace 0us 1ms frames\nnic eth0 gro\n", form)
			for f := range strings.SplitSeq(c.frames, ",") {
				fmt.Fprintf(&b, "at 10us tcp eth0 1 %s\n", f)
			}
			b.WriteString("run 1ms")
			same(t, c.name+", "+form, order(play(t, b.String())), want)
		}
	}
}

// G6 and G7 with C7: what a new packet pushes out of GRO goes to the list: the superframe of
// 7 whose successor is not next in sequence, and the first of 9 flows in one bucket.
func TestC7PushedOutWaits(t *testing.T) {
	p := play(t, "nic eth0 gro\ntrace 0us 1ms frames\nat 10us tcp eth0 1 7 1448\nat 10us tcp eth0 1 1 1449\nrun 1ms")
	same(t, "G6", order(p), "eeeeeeee 7 1 |")

	var b strings.Builder
	b.WriteString("kernel gro_normal=%s\nnic eth0 gro table=one_list\ntrace 0us 1ms frames\n")
	for flow := range 9 {
		fmt.Fprintf(&b, "at 10us tcp eth0 %d 1 1448\n", flow)
	}
	b.WriteString("run 1ms")
	p = play(t, fmt.Sprintf(b.String(), "skb_list_segments"))
	same(t, "G7 with a list", order(p), "eeeeeeeee 1 1 1 1 1 1 1 1 1 |")
	p = play(t, fmt.Sprintf(b.String(), "single"))
	same(t, "G7, v4.8", order(p), "eeeeeeeee 1 1 1 1 1 1 1 1 1 |")
	b.Reset()
	b.WriteString("kernel gro_normal=single\nnic eth0 gro table=one_list\ntrace 0us 1ms frames\n")
	for flow := range 10 {
		fmt.Fprintf(&b, "at 10us tcp eth0 %d 1 1448\n", flow)
	}
	b.WriteString("run 1ms")
	same(t, "ten flows in one list", order(play(t, b.String())), "eeeeeeeee 1 e 1 1 1 1 1 1 1 1 1 |")
}

// interleaved is traffic of flows that take turns, n segments of each.
func interleaved(flows, n int) string {
	var b strings.Builder
	for range n {
		for f := range flows {
			fmt.Fprintf(&b, "at 10us tcp eth0 %d 1 1448\n", f+1)
		}
	}
	return b.String()
}

// Vector G10: v4.8 at HZ=250 flushes everything after a poll of 64, so that 4 interleaved
// flows get 16 segments each.
func TestG10FourFlowsShareAPoll(t *testing.T) {
	p := play(t, "kernel gro_normal=single\nnic eth0 gro table=one_list\n"+interleaved(4, 32)+"run 1ms")
	same(t, "polls", runLengths(p.r.devs[0].polls), "64x2 0")
	same(t, "segments", runLengths(p.r.stack.segs), "16x8")
}

// Pitfall 12: at HZ >= 1000 a full poll flushes only what is held from an earlier jiffy,
// so that a superframe may grow over polls; a tick in between ends it.
func TestPitfall12HoldTimeFollowsTheTick(t *testing.T) {
	for _, c := range []struct {
		name, machine string
		segments      string
	}{
		{"HZ=250", "hz=250 tick=3ms", "16x8"},
		{"HZ=1000, one jiffy", "hz=1000 tick=900us", "32x4"},
		// The polls are of about 24 us, from 12 us on: the tick at 40 us is in the second one,
		// which therefore flushes what the first has begun.
		{"HZ=1000, a tick in the second poll", "hz=1000 tick=40us", "32x4"},
		{"HZ=100", "hz=100 tick=3ms", "16x8"},
	} {
		p := play(t, "machine "+c.machine+"\nnic eth0 gro\ntask hog 1s\n"+interleaved(4, 32)+"run 2ms")
		same(t, c.name, runLengths(p.r.stack.segs), c.segments)
	}
	// Three polls, and a tick in the second: it ends what the first began, the third begins anew.
	p := play(t, "machine hz=1000 tick=40us\nnic eth0 gro\ntask hog 1s\n"+interleaved(16, 12)+"run 2ms")
	same(t, "polls", runLengths(p.r.devs[0].polls), "64x3 0")
	same(t, "three polls with a tick in the second", runLengths(p.r.stack.segs), "8x16 4x16")
}

// Pitfall 14: since v5.5 packets and superframes share one list, in order; since v5.11 a
// superframe of 8 segments takes everything before it along at once.
func TestPitfall14OneListForAll(t *testing.T) {
	const frames = "nic eth0 gro\ntrace 0us 1ms frames\nat 10us frames eth0 2\nat 10us tcp eth0 1 7 1448\nat 10us tcp eth0 1 1 1448 psh\nat 10us frames eth0 1\nrun 1ms"
	for form, want := range map[string]string{
		"skb_list":          "eeeeeeeeeee 1 1 8 1 |",
		"skb_list_segments": "eeeeeeeeee 1 1 8 e 1 |",
		"unlimited":         "eeeeeeeeeee 1 1 8 1 |",
		"frags_list":        "e 1 e 1 eeeeeeeee 1 8 |", // napi_gro_receive: the packet behind overtakes
		"single":            "e 1 e 1 eeeeeeee 8 e 1 |",
	} {
		same(t, form, order(play(t, "kernel gro_normal="+form+"\n"+frames)), want)
	}
}

// The experiment without a limit hands up one list a poll, of up to 64 packets.
func TestUnlimitedListOfAPoll(t *testing.T) {
	for form, lists := range map[string]int{"unlimited": 3, "skb_list_segments": 19} {
		p := play(t, "kernel gro_normal="+form+"\nnic eth0 gro\nat 10us frames eth0 150\nrun 1ms")
		same(t, "polls", runLengths(p.r.devs[0].polls), "64x2 22")
		same(t, form+": lists", p.r.stack.lists, lists) // 64/8 + 64/8 + 22/8
	}
}

// In v5.4.0 and the RFC the list goes up before GRO is flushed, and superframes after it,
// one by one. Since v5.4.18 they join the list.
func TestListBeforeOrAfterTheFlush(t *testing.T) {
	for form, lists := range map[string]int{"rfc_2019": 1, "frags_list_5_4_0": 1, "frags_list": 1} {
		p := play(t, "kernel gro_normal="+form+"\ntrace 0us 1ms frames\nnic eth0 gro frags\nat 10us tcp eth0 1 3 1448\nat 10us frames eth0 2\nrun 1ms")
		want := "eeeee 1 1 3 |"
		same(t, form, order(p), want)
		same(t, form+": lists", p.r.stack.lists, lists)
	}
}

// Fact 4.3 step 1: an interface without GRO hands up NORMAL packets, through the same list
// and with the same batches. (Generic XDP has the same effect since v4.19.)
func TestGROOffStillBatches(t *testing.T) {
	p := play(t, "trace 0us 1ms frames\nnic eth0\nat 10us frames eth0 10\nrun 1ms")
	same(t, "order", order(p), "eeeeeeee 1 1 1 1 1 1 1 1 ee 1 1 |")
	same(t, "GRO's work", p.r.m.Cores[0].Spent()[model.StageGROReceive], 0)
	same(t, "lists", p.r.stack.lists, 2)
}

// Regularity 19.2 item 3: in a list all netif_receive_skb lines come before the first
// wakeup; one by one, the wakeup comes between the lines.
func TestR3WakeupAfterTheLinesOfAList(t *testing.T) {
	for form, want := range map[string]string{
		"skb_list_segments": "rrrw",
		"single":            "rwrr",
	} {
		p := play(t, "kernel gro_normal="+form+"\ntrace 0us 1ms frames\nnic eth0 gro\ntask reader 10us\nat 100us frames eth0 3\nrun 1ms")
		got := ""
		for i := range p.events {
			switch e := &p.events[i]; {
			case e.Point == trace.NetifReceiveSKB:
				got += "r"
			case e.Point == trace.SchedWakeup && e.S == "reader" && e.At > 100*sim.Microsecond:
				got += "w"
			}
		}
		same(t, form, got, want)
	}
}

// Regularity 19.2 item 9: a superframe ends where the sender's write does, by PSH. A write
// of 64 KiB is 45 segments of 1448 bytes and a rest of 376.
func TestR9SuperframesEndWithTheWrite(t *testing.T) {
	var b strings.Builder
	b.WriteString("nic eth0 gro\n")
	for range 3 {
		b.WriteString("at 10us tcp eth0 1 45 1448\nat 10us tcp eth0 1 1 376 psh\n")
	}
	b.WriteString("run 1ms")
	p := play(t, b.String())
	// Polls of 64, 64 and 10: the end of a poll at HZ=250 cuts the second write into 18 and
	// 27 + 1, the third into 36 and 9 + 1: smaller superframes have room for the rest.
	same(t, "polls", runLengths(p.r.devs[0].polls), "64x2 10")
	same(t, "segments", runLengths(p.r.stack.segs), "45 1 18 28 36 10")
	p = play(t, "machine hz=1000 tick=900us\n"+b.String())
	same(t, "segments at HZ=1000", runLengths(p.r.stack.segs), "45 1 45 1 45 1")
}

// Every version's table and every form of delivery conserves what it gets; see also
// TestInvariantsOfRandomMachines.
func TestFormsAgreeOnWhatIsDelivered(t *testing.T) {
	for _, form := range GRONormalNames() {
		for _, table := range gro.TableNames() {
			p := play(t, "kernel gro_normal="+form+"\nnic eth0 gro table="+table+"\n"+interleaved(10, 20)+"at 20us frames eth0 7\nrun 1ms")
			same(t, form+", "+table+": segments", p.r.stack.delivered, 207)
			same(t, form+", "+table+": live skbs", p.r.skbs.Live(), 0)
			if slices.Contains(p.r.stack.segs, 0) {
				t.Errorf("%s, %s: an empty skb reached the stack", form, table)
			}
		}
	}
}
