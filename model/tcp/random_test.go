package tcp

import (
	"testing"

	"pgregory.net/rapid"

	"napisim/model"
	"napisim/sim"
)

// drawLink returns a connection with everything drawn: path, sizes, controls, the
// receiver's buffer, and a script of losses, duplicates and delays.
func drawLink(rt *rapid.T) *link {
	snd, rcv := DefaultSenderConfig(), DefaultReceiverConfig()
	snd.Bytes = rapid.Int64Range(1, 400*seg).Draw(rt, "bytes")
	snd.MSS = rapid.SampledFrom([]int{seg, 500, 8948}).Draw(rt, "mss")
	rcv.MSS = snd.MSS
	snd.Congestion = rapid.SampledFrom([]string{"reno", "cubic"}).Draw(rt, "congestion")
	snd.TSO = rapid.SampledFrom([]int{0, 8192, 65536}).Draw(rt, "tso")
	snd.PushBursts = rapid.Bool().Draw(rt, "push")
	snd.LimitOutput = rapid.SampledFrom([]int64{0, 1 << 20}).Draw(rt, "limit output")
	snd.RACK = rapid.Bool().Draw(rt, "rack")
	snd.InitCwnd = rapid.IntRange(1, 40).Draw(rt, "initial cwnd")
	rcv.CompSACKs = rapid.SampledFrom([]int{0, 44}).Draw(rt, "comp sacks")
	rcv.ScalingRatio = rapid.SampledFrom([]int{0, 65, 128}).Draw(rt, "scaling ratio")
	rcv.RcvBuf = rapid.SampledFrom([]int{0, 0, 8_000, 30_000, 200_000}).Draw(rt, "rcvbuf")
	l := newLink(rt, snd, rcv)
	l.keep = false
	l.gro = rapid.IntRange(1, 20).Draw(rt, "gro")
	l.truesize = rapid.SampledFrom([]int{1800, 2304, 4352}).Draw(rt, "truesize")
	l.gap = sim.Time(rapid.SampledFrom([]int{0, 800, 8_000, 80_000}).Draw(rt, "byte time"))
	l.delay = sim.Time(rapid.IntRange(1, 50_000).Draw(rt, "delay")) * sim.Microsecond
	rnd := sim.NewRand(rapid.Uint64().Draw(rt, "seed"), "wire")
	percent := func(label string) int { return rapid.SampledFrom([]int{0, 1, 5, 20}).Draw(rt, label) }
	drop, twice, late, ackLoss := percent("drop"), percent("twice"), percent("late"), percent("ack loss")
	l.fate = func(int, *model.Frame) (f fate) {
		f.drop = rnd.IntN(100) < drop
		f.twice = rnd.IntN(100) < twice
		if rnd.IntN(100) < late {
			f.late = rnd.Uniform(2 * l.delay)
		}
		return f
	}
	l.loseAck = func(int) bool { return rnd.IntN(100) < ackLoss }
	return l
}

// Whatever the wire does, the stream arrives complete and in order, every ledger
// closes, and the link finds no fault: the window's edge never moves left, and no
// new data makes the pipe larger than the congestion window.
func TestRandomWire(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := drawLink(rt)
		reader := rapid.SampledFrom([]sim.Time{0, 0, sim.Millisecond, 300 * sim.Millisecond}).Draw(rt, "reader")
		if reader > 0 {
			// The application comes by at intervals and reads what fits its buffer.
			l.read = false
			size := rapid.IntRange(1000, 100_000).Draw(rt, "read size")
			l.eng.Schedule(reader, 5, &visitor{l, reader, size}, 0)
		}
		invariants := &watcher{l: l, rt: rt}
		l.eng.Schedule(0, 250, invariants, 0)
		l.run(4000 * sim.Second)
		if l.delivered != l.snd.cfg.Bytes || !l.snd.Done() {
			rt.Fatalf("%d of %d bytes delivered, done %v: %+v\n%+v", l.delivered, l.snd.cfg.Bytes, l.snd.Done(), l.snd.Stats(), l.rcv.Stats())
		}
	})
}

// visitor is an application that reads at intervals.
type visitor struct {
	l     *link
	every sim.Time
	size  int
}

func (v *visitor) Fire(uint64) {
	v.l.readAll(v.size)
	if v.l.delivered < v.l.snd.cfg.Bytes {
		v.l.eng.Schedule(v.l.eng.Now()+v.every, 5, v, 0)
	}
}

// watcher looks at the connection at the end of instants.
type watcher struct {
	l     *link
	rt    *rapid.T
	looks int
}

func (w *watcher) Fire(uint64) {
	l := w.l
	if err := l.snd.Check(); err != nil {
		w.rt.Fatal(err)
	}
	if err := l.rcv.Check(); err != nil {
		w.rt.Fatal(err)
	}
	if w.looks++; w.looks < 2000 && !l.snd.Done() {
		l.eng.Schedule(l.eng.Now()+l.delay/3+1, 250, w, 0)
	}
}

// The queues against a naive set of bytes: whatever overlaps arrive, RCV.NXT is the
// first byte missing, the out-of-order queue holds exactly the other bytes that
// came, and the SACK blocks are runs of them, the one that was extended last first.
func TestQueuesAgainstOracle(t *testing.T) {
	const size = 64 // bytes per segment
	rapid.Check(t, func(rt *rapid.T) {
		cfg := DefaultReceiverConfig()
		cfg.CompSACKs, cfg.Rmem[1] = 0, 4<<20
		var pool model.SKBPool
		var free model.SKBList
		r := NewReceiver(cfg, &pool)
		var got [4000]bool // got[i]: byte FirstSeq+i has arrived
		nxt, read, runs := 0, 0, 0
		for range rapid.IntRange(1, 80).Draw(rt, "skbs") {
			first := max(nxt+rapid.IntRange(-300, 600).Draw(rt, "offset"), 0)
			segs := rapid.IntRange(1, 5).Draw(rt, "segments")
			last := rapid.IntRange(1, size).Draw(rt, "last")
			if first+segs*size > len(got) {
				break
			}
			s := superframe(&pool, first, segs, size, last)
			end := first + s.Payload
			fresh := false
			for i := first; i < end; i++ {
				fresh = fresh || !got[i]
				got[i] = true
			}
			old := nxt
			for nxt < len(got) && got[nxt] {
				nxt++
			}
			v := r.Receive(0, s, &free)
			// Bytes that only several skbs together hold already are not recognised.
			if v.Dropped > 0 && (fresh || v.Reason != model.DropTCPOld) || end <= old && v.Dropped == 0 {
				rt.Fatalf("[%d, %d) fresh %v: %+v", first, end, fresh, v)
			}
			if int(r.RcvNxt()-FirstSeq) != nxt || (nxt > old) != (v.DataReady && nxt > old) {
				rt.Fatalf("RCV.NXT %d, want %d; %+v", r.RcvNxt()-FirstSeq, nxt, v)
			}
			if !fresh && !v.AckNow || nxt == old && !v.AckNow {
				rt.Fatalf("[%d, %d): no ACK for a duplicate or a gap", first, end)
			}
			sameBytes(rt, r, got[:], nxt)
			var ack model.Segment
			r.BuildAck(0, &ack)
			runs = max(runs, countRuns(got[:], nxt))
			sameBlocks(rt, &ack, got[:], nxt, first, runs)
			if rapid.Bool().Draw(rt, "read") {
				read += r.Read(0, rapid.IntRange(0, 500).Draw(rt, "bytes"), &free).Bytes
			}
			if r.Readable() != nxt-read {
				rt.Fatalf("%d readable, want %d", r.Readable(), nxt-read)
			}
			if err := r.Check(); err != nil {
				rt.Fatal(err)
			}
			for s := free.PopFront(); s != nil; s = free.PopFront() {
				pool.Put(s)
			}
		}
		r.Close(&free)
		for s := free.PopFront(); s != nil; s = free.PopFront() {
			pool.Put(s)
		}
		if pool.Live() != 0 || r.RmemAlloc() != 0 {
			rt.Fatalf("%d skbs leaked, %d bytes charged", pool.Live(), r.RmemAlloc())
		}
	})
}

// superframe returns segments of the given size, the last of them shorter.
func superframe(pool *model.SKBPool, first, segs, size, last int) *model.SKB {
	if segs == 1 {
		size = last
	}
	f := model.Frame{Seq: FirstSeq + uint64(first), Payload: int32(size), TSVal: 1, Flags: model.ACK, Proto: model.TCP}
	s := newSKB(pool, &f, 2304)
	for i := 1; i < segs; i++ {
		if i == segs-1 {
			f.Payload = int32(last)
		}
		merge(s, &f)
	}
	return s
}

// sameBytes compares the out-of-order queue with the bytes beyond nxt.
func sameBytes(t *rapid.T, r *Receiver, got []bool, nxt int) {
	held := make([]bool, len(got))
	for _, e := range r.ofo {
		for i := e.s.Frame.Seq; i < e.end(); i++ {
			held[i-FirstSeq] = true
		}
	}
	for i := range got {
		if held[i] != (got[i] && i > nxt) {
			t.Fatalf("byte %d: in the out-of-order queue %v, arrived %v, RCV.NXT %d", i, held[i], got[i], nxt)
		}
	}
}

func countRuns(got []bool, nxt int) (runs int) {
	for i := nxt + 1; i < len(got); i++ {
		if got[i] && !got[i-1] {
			runs++
		}
	}
	return runs
}

// sameBlocks checks the SACK option of an ACK. ever is the largest number of runs
// that there was: of more than four the oldest are forgotten, and a block that
// touches a forgotten one does not know.
func sameBlocks(t *rapid.T, ack *model.Segment, got []bool, nxt, first, ever int) {
	blocks := ack.Blocks[:ack.SACKs]
	if ack.DSACK {
		for i := blocks[0].Start; i < blocks[0].End; i++ {
			if !got[i-FirstSeq] {
				t.Fatalf("DSACK %v of a byte that never came", blocks[0])
			}
		}
		blocks = blocks[1:]
	}
	runs := countRuns(got, nxt)
	want := min(runs, maxSACKBlocks-(ack.SACKs-len(blocks)))
	if len(blocks) != want && (ever <= 4 || first > nxt && len(blocks) == 0) {
		t.Fatalf("%d blocks for %d runs", len(blocks), runs)
	}
	for _, b := range blocks {
		start, end := int(b.Start-FirstSeq), int(b.End-FirstSeq)
		if start <= nxt || ever <= 4 && (got[start-1] || end < len(got) && got[end]) {
			t.Fatalf("block [%d, %d) is no whole run, RCV.NXT %d", start, end, nxt)
		}
		for i := start; i < end; i++ {
			if !got[i] {
				t.Fatalf("block [%d, %d): byte %d is missing", start, end, i)
			}
		}
	}
	if first > nxt && len(blocks) > 0 {
		if start, end := int(blocks[0].Start-FirstSeq), int(blocks[0].End-FirstSeq); first < start || first >= end {
			t.Fatalf("the first block [%d, %d) is not that of the segment at %d", start, end, first)
		}
	}
}
