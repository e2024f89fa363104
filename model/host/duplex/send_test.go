package duplex

import (
	"slices"
	"testing"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
)

const mss = 1448

// TestFirstWrite: the initial window of 10 segments leaves in two halves (tcp_cwnd_test),
// the first when half of the receiver's window is written (22 segments of 65160/2 bytes),
// as recorded: frames 5 and 5. Each acknowledgement of n segments makes room for 2n.
func TestFirstWrite(t *testing.T) {
	r := newRig(nil)
	r.run(t, func(tk *cpu.Task) {
		r.client.Send(tk, 65536)
		if got, want := r.sizes(), []int{5 * mss, 5 * mss}; !slices.Equal(got, want) {
			t.Errorf("sent %v, not %v", got, want)
		}
		if got := r.client.snd.cwnd; got != 10 {
			t.Errorf("window of %d segments before an acknowledgement", got)
		}
		r.deliver()
		if got := r.client.snd.cwnd; got < 20 || got > 10+46 {
			t.Errorf("window of %d segments after 46 were acknowledged", got)
		}
	})
	total := 0
	for i := range r.log {
		p := &r.log[i]
		total += int(p.Payload)
		if p.Segs() > 1 && p.Flags&model.PSH == 0 {
			t.Errorf("packet %d of %d segments is not pushed", i, p.Segs())
		}
	}
	if last := &r.log[len(r.log)-1]; last.Flags&model.PSH == 0 {
		t.Error("the end of the write is not pushed")
	}
	if total != 65536 || r.server.rcv.Readable() != 65536 {
		t.Errorf("%d bytes sent, %d readable", total, r.server.rcv.Readable())
	}
}

// TestWriteOf64KiB: with open windows a write makes one skb of 45 segments and a pushed
// rest of 376 bytes: 65536 = 45*1448 + 376, and 46 would be above gso_max_size.
func TestWriteOf64KiB(t *testing.T) {
	r := newRig(nil)
	r.run(t, func(tk *cpu.Task) {
		n := &r.client.snd
		n.cwnd, n.maxWnd, n.wnd, n.wndEnd = 200, 1<<20, 1<<20, n.una+1<<20
		r.client.Send(tk, 65536)
		if got, want := r.sizes(), []int{45 * mss, 376}; !slices.Equal(got, want) {
			t.Fatalf("sent %v, not %v", got, want)
		}
		if r.log[1].Flags&model.PSH == 0 || r.log[1].Seq != r.log[0].Seq+45*mss {
			t.Errorf("the rest: flags %b at %d", r.log[1].Flags, r.log[1].Seq)
		}
	})
}

// TestReceiverWindow: a pushed skb is cut where the window ends, inside a segment too, as
// recorded (12 segments and 1224 bytes); the small one that follows waits for its
// acknowledgement (Nagle, tcp_minshall_check).
func TestReceiverWindow(t *testing.T) {
	r := newRig(nil)
	r.run(t, func(tk *cpu.Task) {
		n := &r.client.snd
		n.cwnd, n.wndEnd = 100, n.una+18600
		r.client.Send(tk, 18600+600)
		if got, want := r.sizes(), []int{18600}; !slices.Equal(got, want) {
			t.Fatalf("sent %v, not %v", got, want)
		}
		n.wndEnd += 100_000
		r.client.writeXmit(tk.Core(), false, false)
		if got := len(r.log); got != 1 {
			t.Errorf("a small segment left beside another: %v", r.sizes())
		}
		r.deliver()
		if got, want := r.sizes(), []int{18600, 600}; !slices.Equal(got, want) {
			t.Errorf("sent %v, not %v", got, want)
		}
	})
}

// TestSmallQueues: with more in the driver's hands than a millisecond's worth the socket
// stops, and the driver's frees bring it on in the tasklet, once.
func TestSmallQueues(t *testing.T) {
	r := newRig(nil)
	r.run(t, func(tk *cpu.Task) {
		n, c := &r.client.snd, tk.Core()
		r.held = true
		n.cwnd, n.pacing, n.maxWnd, n.wndEnd = 16, 10_000, 20_000, n.una+1<<20
		r.client.Send(tk, 30*mss)
		before := len(r.log)
		if !n.throttled || !n.unsent() {
			t.Fatalf("sent %v, throttled %v", r.sizes(), n.throttled)
		}
		for i := range before {
			r.client.WFree(c, r.log[i].Truesize)
		}
		if r.tasklets != 1 || len(r.log) == before {
			t.Errorf("%d tasklets, %v sent", r.tasklets, r.sizes())
		}
	})
}

// TestAutocorking: the short end of a write waits while the driver has not freed what was
// sent before (tcp_should_autocork), and leaves when it has.
func TestAutocorking(t *testing.T) {
	r := newRig(nil)
	r.run(t, func(tk *cpu.Task) {
		n, c := &r.client.snd, tk.Core()
		r.held = true
		n.cwnd, n.maxWnd, n.wndEnd = 100, 40*mss, n.una+1<<20
		r.client.Send(tk, 20*mss+100)
		if got, want := r.sizes(), []int{20 * mss}; !slices.Equal(got, want) {
			t.Fatalf("sent %v, not %v", got, want)
		}
		r.client.WFree(c, r.log[0].Truesize)
		if got, want := r.sizes(), []int{20 * mss, 100}; !slices.Equal(got, want) || r.tasklets != 1 {
			t.Errorf("sent %v by %d tasklets, not %v by one", got, r.tasklets, want)
		}
	})
}

// TestSendBuffer: a writer whose buffer is full sleeps, and is woken when a third is free.
func TestSendBuffer(t *testing.T) {
	r := newRig(nil)
	m := r.core.Machine()
	r.run(t, func(tk *cpu.Task) {
		n := &r.client.snd
		if n.sndbuf != 2*10*(4096+256) { // tcp_sndbuf_expand: ten segments, twice
			t.Errorf("buffer of %d bytes", n.sndbuf)
		}
		m.NewTask(r.core, "network", cpu.TaskConfig{}, func(*cpu.Task) {
			if !n.noSpace || n.wmemQueued < n.sndbuf {
				t.Errorf("the writer sleeps with %d of %d bytes", n.wmemQueued, n.sndbuf)
			}
			r.deliver()
			if n.noSpace {
				t.Error("the writer was not woken")
			}
		}).WakeFromDevice()
		r.client.Send(tk, 200_000)
	})
}

// TestAckCoalescing: acknowledgements of one millisecond are one in the backlog.
func TestAckCoalescing(t *testing.T) {
	for _, later := range []bool{false, true} {
		r := newRig(nil)
		r.run(t, func(tk *cpu.Task) {
			c := tk.Core()
			r.client.Send(tk, 10*mss)
			r.client.lock(c)
			r.deliverOne()
			if later {
				c.Work(2 * sim.Millisecond)
				c.Look()
			}
			r.deliver()
			want := 1
			if later {
				want = 2
			}
			if got := r.client.backlog.Len(); got != want || r.client.backlog.Back().Frame.Ack != 1+10*mss {
				t.Errorf("%d in the backlog, not %d", got, want)
			}
			r.client.unlock(c)
			if got := r.client.snd.cwnd; got != 20 || r.client.snd.packetsOut != 0 {
				t.Errorf("window of %d segments, %d out", got, r.client.snd.packetsOut)
			}
		})
	}
}

// TestAnswer: a socket that answers acknowledges with its data, and the first answer ends
// the acknowledgements at once.
func TestAnswer(t *testing.T) {
	r := newRig(func(c *Config) { c.NoDelay = true })
	r.run(t, func(tk *cpu.Task) {
		pure := 0
		count := func() {
			for len(r.wire) > 0 {
				if r.wire[0].p.Payload == 0 {
					pure++
				}
				r.deliverOne()
			}
		}
		for range 10 {
			r.client.Send(tk, 1)
			count()
			if r.server.Recv(tk, 100) != 1 {
				t.Fatal("no request")
			}
			r.server.Send(tk, 1)
			count()
			if r.client.Recv(tk, 100) != 1 {
				t.Fatal("no answer")
			}
		}
		if pure != 2 { // one of each side, as recorded
			t.Errorf("%d acknowledgements without data", pure)
		}
	})
}

// TestEnd: both ends finish; the reader sees the end after the data.
func TestEnd(t *testing.T) {
	r := newRig(nil)
	r.run(t, func(tk *cpu.Task) {
		r.client.Send(tk, 100)
		r.client.Shutdown(tk)
		r.deliver()
		if a, b := r.server.Recv(tk, 1000), r.server.Recv(tk, 1000); a != 100 || b != 0 {
			t.Errorf("read %d and %d bytes", a, b)
		}
		r.server.Shutdown(tk)
		r.deliver()
		if got := r.client.Recv(tk, 1000); got != 0 {
			t.Errorf("read %d bytes", got)
		}
		if r.client.snd.packetsOut != 0 || r.server.snd.packetsOut != 0 {
			t.Error("a FIN is not acknowledged")
		}
	})
	var free model.SKBList
	r.client.rcv.Close(&free)
	r.server.rcv.Close(&free)
	for p := free.PopFront(); p != nil; p = free.PopFront() {
		r.env.SKBs.Put(p)
	}
	if n := r.env.SKBs.Live(); n != 0 {
		t.Errorf("%d skbs are left", n)
	}
}

// TestModes: paying debts late or at once changes nothing.
func TestModes(t *testing.T) {
	type result struct {
		sizes []int
		print uint64
		at    sim.Time
	}
	var want *result
	for _, mode := range []sim.Mode{sim.Lazy, sim.Eager, sim.Slow} {
		r := newRigIn(mode, nil)
		got := &result{}
		r.run(t, func(tk *cpu.Task) {
			for range 4 {
				r.client.Send(tk, 20_000)
				r.deliver()
				r.server.Recv(tk, 30_000)
			}
			tk.Core().Look()
			got.at = tk.Core().Now()
		})
		got.sizes, got.print = r.sizes(), r.core.Machine().Fingerprint.Sum()
		if want == nil {
			want = got
		} else if !slices.Equal(got.sizes, want.sizes) || got.print != want.print || got.at != want.at {
			t.Errorf("mode %d: %+v, not %+v", mode, got, want)
		}
	}
}

// TestOpenCubic: before the first loss the window grows by a segment for each 20
// acknowledged, as bictcp_update has it while last_max_cwnd is 0.
func TestOpenCubic(t *testing.T) {
	var u openCubic
	for i := range 50 {
		if got := u.update(sim.Time(i)*sim.Millisecond, 30, 1); got != 20 {
			t.Fatalf("after %d ms: a segment for %d", i, got)
		}
	}
}
