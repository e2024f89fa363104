package guest

import (
	"testing"

	"pgregory.net/rapid"
)

// TestBQLFirstBurst: the limit starts at zero, so the first frame stops the queue. With
// limit_min at its maximum the first completion opens it for good; that is why each
// frame of pktgen's first burst had its own doorbell, and no later one.
func TestBQLFirstBurst(t *testing.T) {
	q := newBQL(Config{BQL: true, BQLMin: BQLMax}, 250)
	for i := range 65 {
		q.sent(60)
		if !q.xoff {
			t.Fatalf("frame %d of the first burst does not stop the queue", i)
		}
	}
	if !q.done(60, 0) || q.xoff {
		t.Errorf("the first completion does not start the queue")
	}
	q.sent(64 * 60)
	if q.xoff || q.done(64*60+64*60, 0) {
		t.Errorf("the queue was stopped again")
	}
}

// TestBQLGrows follows dql_completed by hand. Two frames of 1514 over a limit of zero,
// both completed at once: 3028 over the limit and none in progress, so the limit grows
// by what was completed since the last time, 3028. Then 6056 queued: 3028 over.
func TestBQLGrows(t *testing.T) {
	q := newBQL(Config{BQL: true}, 250)
	q.sent(1514)
	q.sent(1514)
	if !q.done(3028, 0) || q.limit != 3028 || q.avail() != 3028 {
		t.Fatalf("limit %d, avail %d", q.limit, q.avail())
	}
	for range 2 {
		q.sent(1514)
	}
	if q.xoff {
		t.Errorf("stopped at its limit, not above")
	}
	q.sent(1514)
	if !q.xoff || q.avail() != -1514 {
		t.Errorf("not stopped at 1514 above the limit")
	}
	// All three done: over by 1514, none in progress. Completed 7570 since 3028 were
	// queued at the last time: the limit grows by 4542.
	if !q.done(4542, 1) || q.limit != 7570 {
		t.Errorf("limit %d", q.limit)
	}
}

// TestBQLShrinks: while the queue is never empty the least slack of a second is taken
// off. A limit of 10000 with 3000 queued at each completion of 1000 has a slack of
// 10000 - 2*1000.
func TestBQLShrinks(t *testing.T) {
	q := newBQL(Config{BQL: true}, 250)
	q.sent(10000)
	q.done(10000, 0)
	if q.limit != 10000 {
		t.Fatalf("limit %d", q.limit)
	}
	q.sent(3000)
	q.done(1000, 1) // nothing was in progress before
	for jiffy := int64(2); jiffy <= 250; jiffy++ {
		q.sent(1000)
		q.done(1000, jiffy)
		if q.limit != 10000 {
			t.Fatalf("limit %d at jiffy %d", q.limit, jiffy)
		}
	}
	q.sent(1000)
	q.done(1000, 251)
	if q.limit != 2000 {
		t.Errorf("limit %d after a second, not 10000 - 8000", q.limit)
	}
}

// TestBQLRandom: a stopped queue with nothing in flight is started by the completion
// that emptied it, or it would stop for ever; and the books agree.
func TestBQLRandom(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q := newBQL(Config{BQL: true, BQLMin: rapid.SampledFrom([]int{0, 3000}).Draw(rt, "min")}, 100)
		jiffy, flight := int64(0), 0
		for range rapid.IntRange(1, 200).Draw(rt, "steps") {
			jiffy += int64(rapid.IntRange(0, 30).Draw(rt, "jiffies"))
			for n := rapid.IntRange(0, 5).Draw(rt, "sent"); n > 0 && !q.xoff; n-- {
				bytes := rapid.IntRange(60, 1514).Draw(rt, "bytes")
				q.sent(bytes)
				flight += bytes
			}
			done := flight
			if rapid.Bool().Draw(rt, "some") {
				done = rapid.IntRange(0, flight).Draw(rt, "done")
			}
			q.done(done, jiffy)
			flight -= done
			if flight != int(q.queued-q.completed) {
				rt.Fatalf("%d in flight, not %d", q.queued-q.completed, flight)
			}
			if flight == 0 && q.xoff {
				rt.Fatalf("stopped for ever: limit %d", q.limit)
			}
		}
	})
}

// TestBQLOff: virtio_net of v6.1 has none.
func TestBQLOff(t *testing.T) {
	q := newBQL(Config{}, 250)
	q.sent(1 << 20)
	if q.xoff || q.done(1<<20, 0) {
		t.Errorf("a queue without limits was stopped")
	}
}
