package tcp_test

import (
	"fmt"

	"napisim/model"
	"napisim/model/tcp"
	"napisim/sim"
)

// A host is what stands between the two ends in a simulation: here a wire of 1 Gbit/s
// and 100 us, and a kernel that takes no time.
type host struct {
	eng  *sim.Engine
	snd  *tcp.Sender
	rcv  *tcp.Receiver
	pool model.SKBPool
	free model.SKBList
	busy sim.Time
	got  int
}

// Offer serialises a frame and lets it arrive.
func (h *host) Offer(f model.Frame, at sim.Time) sim.Time {
	h.busy = max(h.busy, at) + sim.Time(model.WireBytes(f.Len))*8*sim.Nanosecond
	f.Arrival = h.busy + 100*sim.Microsecond
	h.eng.Schedule(f.Arrival, 1, arrival{h, f}, 0)
	return h.busy
}

type arrival struct {
	*host
	f model.Frame
}

// Fire is the receive path of this host, from driver to application.
func (a arrival) Fire(uint64) {
	now := a.eng.Now()
	s := a.pool.Get()
	s.Frame, s.Segs, s.Payload, s.LastSeg, s.Truesize = a.f, 1, int(a.f.Payload), int(a.f.Payload), 2304
	s.Arrivals = append(s.Arrivals, a.f.Arrival)
	v := a.rcv.Receive(now, s, &a.free)
	if v.AckNow {
		a.ack(now)
	}
	if v.DataReady {
		d := a.rcv.Read(now, 1<<20, &a.free)
		a.got += d.Bytes
		if a.rcv.CleanupRbuf(now, d.Bytes) {
			a.ack(now)
		}
	}
	for s := a.free.PopFront(); s != nil; s = a.free.PopFront() {
		a.pool.Put(s)
	}
}

func (h *host) ack(now sim.Time) {
	var seg model.Segment
	h.rcv.BuildAck(now, &seg)
	h.eng.Schedule(now+100*sim.Microsecond, 2, answer{h, seg}, 0)
}

type answer struct {
	*host
	seg model.Segment
}

// Fire lets an ACK reach the peer.
func (a answer) Fire(uint64) { a.snd.Deliver(&a.seg) }

// A megabyte from a peer to a socket.
func Example() {
	h := &host{eng: sim.NewEngine(sim.Lazy)}
	h.rcv = tcp.NewReceiver(tcp.DefaultReceiverConfig(), &h.pool)
	cfg := tcp.DefaultSenderConfig()
	cfg.Bytes = 1_000_000
	cfg.InitialWindow = int64(h.rcv.Window())
	h.snd = tcp.NewSender(h.eng, 0, cfg, h)
	h.snd.Start(0)
	h.eng.Run()
	h.eng.Close()

	st := h.snd.Stats()
	fmt.Println(h.got, "bytes read, done:", h.snd.Done())
	fmt.Println(st.Segments, "segments in", st.Bursts, "bursts,", st.Retrans, "retransmitted")
	fmt.Println("ledgers:", h.rcv.Check(), h.snd.Check())
	// Output:
	// 1000000 bytes read, done: true
	// 691 segments in 37 bursts, 0 retransmitted
	// ledgers: <nil> <nil>
}
