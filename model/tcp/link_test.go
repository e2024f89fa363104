package tcp

import (
	"fmt"
	"strings"

	"napisim/model"
	"napisim/sim"
)

// A link is the wire of the tests: it serialises frames at a fixed rate and delays
// them, and a script decides what becomes of the n-th one. It delivers to a
// receiver on a host that costs no time, and the receiver's ACKs come back after
// the same delay.
type link struct {
	t     tb
	eng   *sim.Engine
	gap   sim.Time // time of one byte on the wire; 0 is infinitely fast
	delay sim.Time // one way
	// fate is asked for every frame offered, n counting from 0; nil delivers all.
	fate func(n int, f *model.Frame) fate
	// loseAck is asked for every ACK; nil loses none.
	loseAck func(n int) bool

	snd *Sender
	rcv *Receiver

	pool     model.SKBPool
	free     model.SKBList
	busy     sim.Time
	offered  int
	inFlight []model.Frame // of the data direction, by event argument
	spare    []uint64
	acks     []model.Segment
	ackSpare []uint64
	timer    sim.Time // armed delayed ACK

	read       bool // the application reads everything at once
	truesize   int
	keep       bool
	sentLog    []logged
	ackLog     []model.Segment
	delivered  int64
	edge       uint64 // right edge of the window that the receiver has announced
	arrivals   int64
	gro        int // frames merged into one skb, 1 for none
	held       *model.SKB
	flushing   bool
	current    model.Frame
	tailProbes int64
	deaf       bool // takes frames at any time and forgets them
	heldUntil  sim.Time
}

// tb is what tests, benchmarks and the tests of rapid have in common.
type tb interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Error(args ...any)
}

type logged struct {
	at sim.Time
	f  model.Frame
}

// fate is what a script does with a frame.
type fate struct {
	drop  bool
	twice bool
	late  sim.Time // added to the delay, which reorders
}

const (
	evData = iota
	evAck
	evDelAck
	evFlush
)

func newLink(t tb, snd SenderConfig, rcv ReceiverConfig) *link {
	t.Helper()
	l := &link{t: t, eng: sim.NewEngine(sim.Lazy), delay: 5 * sim.Millisecond, read: true, truesize: 2304, keep: true}
	l.rcv = NewReceiver(rcv, &l.pool)
	snd.InitialWindow = int64(l.rcv.Window())
	l.edge = FirstSeq + uint64(snd.InitialWindow)
	l.snd = NewSender(l.eng, 1, snd, l)
	return l
}

// Offer implements Wire.
func (l *link) Offer(f model.Frame, at sim.Time) sim.Time {
	if l.deaf {
		return at
	}
	if at != l.eng.Now() {
		l.t.Fatalf("frame offered at %v for %v", l.eng.Now(), at)
	}
	s := l.snd
	if end := f.Seq + uint64(f.Payload); end > s.nxt {
		// A tail loss probe may exceed the congestion window by its one segment.
		if pipe := s.board.Pipe() + int64(end-s.nxt); pipe > s.cwnd && s.stats.TailProbes == l.tailProbes {
			l.t.Fatalf("%v: new data makes a pipe of %d, cwnd is %d", at, pipe, s.cwnd)
		}
		l.tailProbes = s.stats.TailProbes
		if end > l.edge {
			l.t.Fatalf("%v: sent up to %d, the window ends at %d", at, end, l.edge)
		}
	}
	n := l.offered
	l.offered++
	if l.keep {
		l.sentLog = append(l.sentLog, logged{at, f})
	}
	l.busy = max(l.busy, at) + sim.Time(model.WireBytes(f.Len))*l.gap
	fa := fate{}
	if l.fate != nil {
		l.current = f // a copy, or every frame would be allocated
		fa = l.fate(n, &l.current)
	}
	if fa.drop {
		return l.busy
	}
	f.Arrival = l.busy + l.delay + fa.late
	l.schedule(f)
	if fa.twice {
		f.Arrival += l.delay / 4
		l.schedule(f)
	}
	return l.busy
}

func (l *link) schedule(f model.Frame) {
	var i uint64
	if n := len(l.spare); n > 0 {
		i = l.spare[n-1]
		l.spare = l.spare[:n-1]
		l.inFlight[i] = f
	} else {
		i = uint64(len(l.inFlight))
		l.inFlight = append(l.inFlight, f)
	}
	l.eng.Schedule(f.Arrival, 2, l, evData|i<<8)
}

// Fire implements sim.Handler.
func (l *link) Fire(arg uint64) {
	i := arg >> 8
	switch arg & 0xff {
	case evData:
		f := l.inFlight[i]
		l.spare = append(l.spare, i)
		l.arrive(&f)
	case evAck:
		seg := l.acks[i]
		l.ackSpare = append(l.ackSpare, i)
		l.snd.Deliver(&seg)
	case evDelAck:
		l.timer = 0
		now := l.eng.Now()
		if comp, del := l.rcv.CompSACKTimer(now), l.rcv.DelAckTimer(now); comp || del {
			l.sendAck()
		}
		l.armDelAck()
	case evFlush:
		l.flushing = false
		switch s := l.held; {
		case s == nil:
		case l.heldUntil > l.eng.Now():
			l.hold()
		default:
			l.held = nil
			l.receive(s)
		}
	}
}

// arrive gives the receiver one frame as an skb, merged with its neighbours as far
// as the test asks for it.
func (l *link) arrive(f *model.Frame) {
	if h := l.held; h != nil {
		if h.EndSeq() == f.Seq && h.Segs < l.gro && h.Frame.TSVal == f.TSVal && f.Payload > 0 && f.Payload <= h.Frame.Payload {
			merge(h, f)
			if h.Segs == l.gro || f.Flags&model.PSH != 0 || f.Payload < h.Frame.Payload {
				l.held = nil
				l.receive(h)
			}
			return
		}
		l.held = nil
		l.receive(h)
	}
	s := newSKB(&l.pool, f, l.truesize)
	if l.gro > 1 && f.Payload > 0 && f.Flags&model.PSH == 0 {
		l.held = s
		// The poll ends some frames later, and GRO holds nothing back then.
		l.heldUntil = l.eng.Now() + 10*sim.Microsecond + 45*1538*l.gap
		l.hold()
		return
	}
	l.receive(s)
}

func (l *link) hold() {
	if !l.flushing {
		l.flushing = true
		l.eng.Schedule(l.heldUntil, 6, l, evFlush)
	}
}

// newSKB returns what build_skb makes of a frame.
func newSKB(pool *model.SKBPool, f *model.Frame, truesize int) *model.SKB {
	s := pool.Get()
	s.Frame = *f
	s.Segs, s.Payload, s.LastSeg, s.Truesize, s.Pages = 1, int(f.Payload), int(f.Payload), truesize, 1
	s.Arrivals = append(s.Arrivals, f.Arrival)
	return s
}

// merge appends a frame to a superframe as GRO does with skbs of build_skb.
func merge(s *model.SKB, f *model.Frame) {
	s.Frame.Flags |= f.Flags
	s.Segs++
	s.Payload += int(f.Payload)
	s.LastSeg = int(f.Payload)
	s.Truesize += 2304 - model.SKBHead
	s.Frags++
	s.Pages++
	s.Arrivals = append(s.Arrivals, f.Arrival)
}

func (l *link) receive(s *model.SKB) {
	v := l.rcv.Receive(l.eng.Now(), s, &l.free)
	l.freeAll()
	if v.AckNow {
		l.sendAck()
	}
	if v.DataReady && l.read {
		l.readAll(1 << 30)
	}
	l.armDelAck()
}

func (l *link) readAll(limit int) int {
	now := l.eng.Now()
	d := l.rcv.Read(now, limit, &l.free)
	l.delivered += int64(d.Bytes)
	l.arrivals += int64(len(d.Arrivals))
	l.freeAll()
	if l.rcv.CleanupRbuf(now, d.Bytes) {
		l.sendAck()
	}
	l.armDelAck()
	return d.Bytes
}

func (l *link) sendAck() {
	var seg model.Segment
	l.rcv.BuildAck(l.eng.Now(), &seg)
	edge := seg.Ack + uint64(seg.Window)
	if edge < l.edge {
		l.t.Fatalf("%v: the window's right edge moved left from %d to %d", l.eng.Now(), l.edge, edge)
	}
	l.edge = edge
	if l.keep {
		l.ackLog = append(l.ackLog, seg)
	}
	if l.loseAck != nil && l.loseAck(int(l.rcv.Stats().AcksSent)-1) {
		return
	}
	var i uint64
	if n := len(l.ackSpare); n > 0 {
		i = l.ackSpare[n-1]
		l.ackSpare = l.ackSpare[:n-1]
		l.acks[i] = seg
	} else {
		i = uint64(len(l.acks))
		l.acks = append(l.acks, seg)
	}
	l.eng.Schedule(l.eng.Now()+l.delay, 3, l, evAck|i<<8)
}

func (l *link) armDelAck() {
	if at := min(l.rcv.DelAckDeadline(), l.rcv.CompSACKDeadline()); at != sim.Never && (l.timer == 0 || at < l.timer) {
		l.timer = at
		l.eng.Schedule(max(at, l.eng.Now()), 4, l, evDelAck)
	}
}

func (l *link) freeAll() {
	for s := l.free.PopFront(); s != nil; s = l.free.PopFront() {
		l.pool.Put(s)
	}
}

// run executes the connection until nothing is left to do or the limit comes, and
// checks every identity.
func (l *link) run(limit sim.Time) {
	l.t.Helper()
	l.eng.Schedule(limit, 200, stopper{l.eng}, 0)
	l.snd.Start(0)
	l.eng.Run()
	l.check()
}

type stopper struct{ eng *sim.Engine }

func (s stopper) Fire(uint64) { s.eng.Stop() }

func (l *link) check() {
	l.t.Helper()
	if err := l.snd.Check(); err != nil {
		l.t.Error(err)
	}
	if err := l.rcv.Check(); err != nil {
		l.t.Error(err)
	}
	if got := l.rcv.Stats().BytesRead; got != l.delivered {
		l.t.Errorf("receiver says %d bytes read, %d were", got, l.delivered)
	}
	if got := l.rcv.Stats().SegmentsRead; got != l.arrivals {
		l.t.Errorf("receiver says %d segments read, %d were", got, l.arrivals)
	}
	in, out := l.rcv.QueuedSKBs()
	held := in + out
	if l.held != nil {
		held++
	}
	if l.pool.Live() != held {
		l.t.Errorf("%d skbs alive, %d queued", l.pool.Live(), held)
	}
}

// script renders the log of sent frames, one line per instant: the time, then each
// frame as the number of its first segment from 0, with its payload if that is not
// a full segment, R if data of it was sent before, and P for PSH.
func (l *link) script() string {
	var b strings.Builder
	high, at := uint64(0), sim.Time(-1)
	for _, e := range l.sentLog {
		if e.at != at {
			at = e.at
			fmt.Fprintf(&b, "\n%v:", at)
		}
		fmt.Fprintf(&b, " %.4g", (float64(e.f.Seq)-float64(FirstSeq))/1448)
		if e.f.Payload != 1448 {
			fmt.Fprintf(&b, "+%d", e.f.Payload)
		}
		if e.f.Seq < high {
			b.WriteString("R")
		}
		if e.f.Flags&model.PSH != 0 {
			b.WriteString("P")
		}
		high = max(high, e.f.Seq+uint64(e.f.Payload))
	}
	return strings.TrimSpace(b.String())
}
