package scenarios

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"napisim/model/unit"
	"napisim/scenarios/spec"
	"napisim/sim"
	"napisim/softirq"
)

// TestBusyPollSettings: each way to poll busily, on the kernels that have it, in all modes of
// a run. The shares are those of frames that busy polls take.
func TestBusyPollSettings(t *testing.T) {
	alone(t)
	const (
		rr   = "busy-poll-gro-normal"
		poll = "apps.netserver.busy_poll=50us"
		none = "apps.netserver.busy_poll=0us"
	)
	epoll := []string{"apps.netserver.wait=epoll"}
	deferred := []string{"nics.eth0.napi.gro_flush_timeout=100us", "nics.eth0.napi.napi_defer_hard_irqs=2"}
	with := func(more ...[]string) (all []string) {
		for _, m := range more {
			all = append(all, m...)
		}
		return all
	}
	for _, c := range []struct {
		name, scenario string
		sets           []string
		least, most    float64 // share of frames
	}{
		{"not at all", rr, []string{none}, 0, 0},
		{"each poll, v4.8", rr, []string{"kernel.preset=v4.8", poll}, 0.1, 1},
		{"owned, v4.12", rr, []string{"kernel.preset=v4.12", poll}, 0.99, 1},
		{"the list goes up, v5.4.0", rr, []string{"kernel.preset=v5.4.0", poll}, 0.99, 1},
		{"the list waits", rr, []string{"kernel.behaviours.gro_normal=rfc_2019", poll}, 0.99, 1},
		{"preferred and deferred, v6.1", rr, with([]string{"kernel.preset=v6.1", poll, "apps.netserver.prefer_busy_poll=on", "apps.netserver.busy_poll_budget=16"}, deferred), 0.99, 1},
		{"not by epoll, v4.8", rr, with([]string{"kernel.preset=v4.8", poll, "sysctl.net.core.busy_poll=50"}, epoll), 0, 0},
		{"epoll, params of v6.9", rr, with([]string{"kernel.preset=v6.12", poll}, epoll), 0.99, 1},
		{"epoll, suspended", rr, with([]string{"kernel.preset=v6.13", poll, "apps.netserver.prefer_busy_poll=on", "nics.eth0.napi.irq_suspend_timeout=1ms", "traffic.rr.flows=8"}, deferred, epoll), 0.5, 1},
		{"epoll, suspended and idle", rr, with([]string{"kernel.preset=v6.13", none, "apps.netserver.prefer_busy_poll=on", "nics.eth0.napi.irq_suspend_timeout=1ms"}, deferred, epoll), 0, 0.5},
		{"several at a time on one core", rr, []string{poll, "apps.netserver.cpu=0", "traffic.rr.flows=5"}, 0.05, 1},
		{"preempted", rr, []string{poll, "preempt=full", "apps.netserver.cpu=0", "traffic.rr.flows=5", "traffic.rr.reply=1000B"}, 0.05, 1},
		{"TCP", "quickstart", []string{"sysctl.net.core.busy_read=50", "cpus=2", "apps.reader.cpu=1"}, 0.1, 1},
		{"TCP in epoll", "quickstart", []string{"sysctl.net.core.busy_poll=50", "sysctl.net.core.busy_read=10", "cpus=2", "apps.reader.cpu=1", "apps.reader.wait=epoll"}, 0.1, 1},
		{"a thread polls, too", rr, []string{"kernel.preset=v6.1", poll, "nics.eth0.napi.threaded=enabled"}, 0.99, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := short(t, c.scenario, c.sets...)
			s.Duration = min(s.Duration, 60*unit.Millisecond)
			s.Warmup = s.Duration / 4
			run := mustRun(t, s, Options{})
			want := bytesOf(t, s, run)
			for _, o := range []Options{{Mode: sim.Eager}, {Mode: sim.Slow}, {TieSeed: 7}} {
				if got := bytesOf(t, s, mustRun(t, s, o)); got != want {
					t.Errorf("mode %d, ties by %d, differs from lazy: %s", o.Mode, o.TieSeed, firstDifference(want, got))
				}
			}
			share := metricOf(t, run, "busy_poll_frames") / metricOf(t, run, "rx_frames")
			if share < c.least || share > c.most {
				t.Errorf("busy polls take %.3f of the frames, want %g to %g", share, c.least, c.most)
			}
			if c.scenario == rr && metricOf(t, run, "transactions") < 1000 {
				t.Errorf("%g transactions per second", metricOf(t, run, "transactions"))
			}
		})
	}
}

// In every version a lone client's round trip is shorter when the server polls: no interrupt, no
// softirq and no wakeup lie in between, and moderation holds up nothing.
func TestEveryVersionPollsBusily(t *testing.T) {
	entries, err := Loader(nil).Presets()
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range entries {
		if testing.Short() && i%4 != 0 {
			continue
		}
		rtt := func(usecs string) float64 {
			s := load(t, "busy-poll-gro-normal", "kernel="+e.Name, "duration=10ms", "warmup=2ms", "apps.netserver.busy_poll="+usecs)
			return metricOf(t, mustRun(t, s, Options{}), "rtt_mean")
		}
		if sleeping, polling := rtt("0"), rtt("50"); polling > sleeping/2 {
			t.Errorf("%s: %g s when polling, %g s otherwise", e.Name, polling, sleeping)
		}
	}
}

// Whatever requests, kernels and ways to poll are mixed, books balance and modes agree. The
// kernel's choices are drawn one by one: most of these kernels never existed.
func TestBooksOfRandomBusyPolling(t *testing.T) {
	alone(t)
	rapid.Check(t, func(r *rapid.T) {
		choice := func(path string, values ...string) string {
			return path + "=" + rapid.SampledFrom(values).Draw(r, path)
		}
		const k, nic, app = "kernel.behaviours.", "nics.eth0.", "apps.netserver."
		sets := []string{
			"duration=12ms", "warmup=1ms", "seed=" + fmt.Sprint(rapid.IntRange(1, 1000).Draw(r, "seed")),
			choice("hz", "100", "250", "1000"), choice("preempt", "none", "voluntary", "full"),
			choice(k+spec.BusyPoll, softirq.BusyPollNames()[2:]...), // those that have all settings
			choice(k+spec.NAPISchedule, softirq.NAPIScheduleNames()...),
			choice(k+spec.NAPISchedulePrep, softirq.NAPISchedulePrepNames()...),
			choice(k+spec.NAPIComplete, softirq.NAPICompleteNames()...),
			choice(k+spec.GRONormal, softirq.GRONormalNames()...),
			choice(k+spec.Ksoftirqd, softirq.KsoftirqdNames()...),
			choice(k+spec.SKBDeferFree, "never", "alloc_cpu"),
			choice(nic+"driver", "generic", "lan966x"), choice(nic+"rings.rx", "4", "64"),
			choice(nic+"coalesce.rx-usecs", "0", "20"), choice(nic+"napi.gro_flush_timeout", "0", "20us"),
			choice(app+"cpu", "0", "1"), choice(app+"wait", "recv", "epoll"),
			choice("sysctl.net.core.busy_read", "0", "5"),
			choice("traffic.rr.flows", "1", "3", "20"), choice("traffic.rr.think", "0us", "30us"),
			choice("traffic.rr.reply", "64B", "1518B"), choice("traffic.rr.timeout", "100us", "5ms"),
		}
		s, err := Default().Resolve("busy-poll-gro-normal", append(sets, app+"busy_poll=0"))
		if err != nil {
			r.Fatal(err)
		}
		more := []string{choice(app+"busy_poll", "0", "10", "200"), choice(app+"prefer_busy_poll", "off", "on"), choice(app+"busy_poll_budget", "0", "1", "64")}
		if s.Kernel.Behaviours[spec.BusyPoll] == spec.PreferBusyPoll && s.Apps["netserver"].Wait == spec.WaitEpoll {
			more = []string{choice(app+"busy_poll", "0")}
		}
		if s.Kernel.Behaviours[spec.BusyPoll] == spec.IRQSuspend {
			more = append(more, choice(nic+"napi.irq_suspend_timeout", "0", "200us"))
		}
		if s.Kernel.Behaviours[spec.NAPIComplete] == spec.DeferHardIRQs {
			more = append(more, choice(nic+"napi.napi_defer_hard_irqs", "0", "2"))
		}
		if s, err = Default().Resolve("busy-poll-gro-normal", append(sets, more...)); err != nil {
			r.Fatal(err)
		}
		want := ""
		for _, o := range []Options{{}, {Mode: sim.Eager}, {Mode: sim.Slow}, {TieSeed: 7}} {
			run, err := Run(s, s.Seed, o)
			if err != nil {
				r.Fatal(err)
			}
			// Which charges wait for a look when the warm-up ends is not the same in all modes: a
			// driver looks at its ring only if the device has not told of a frame yet.
			run.Provenance = nil
			got := bytesOf(t, s, run)
			if want == "" {
				want = got
			}
			if got != want {
				r.Fatalf("mode %d, ties by %d, differs from lazy: %s", o.Mode, o.TieSeed, firstDifference(want, got))
			}
		}
	})
}

// The thread of July 2019: the list of packets that a busy loop does not pass up ruins latency,
// and passing it up in the loop repairs that. A request that waits for the end of the loop comes back
// when the 50 us of 1.024 us are over, less the 10 us that the client thinks: worse than
// without busy polling. Without busy polling the two are the same, and in the thread's test with 100
// clients nothing can be told apart (976 against 969 us, p 0.25).
func TestBusyPollNeedsTheListFlushed(t *testing.T) {
	effect(t)
	const name, form = "busy-poll-gro-normal", "kernel.behaviours.gro_normal="
	rtt := func(seeds int, sets ...string) float64 { return mean(t, 0, seeds, name, sets...)("rtt_mean") }
	held, flushed, single := rtt(2, form+"rfc_2019"), rtt(2, form+"frags_list_5_4_0"), rtt(2, form+"single")
	idleHeld, idle := rtt(2, form+"rfc_2019", "apps.netserver.busy_poll=0us"), rtt(2, form+"frags_list_5_4_0", "apps.netserver.busy_poll=0us")
	if low, high := 40e-6, 50*1.024e-6; held < low || held > high {
		t.Errorf("held: %g s, want %g to %g", held, low, high)
	}
	if held < 1.2*idleHeld {
		t.Errorf("held: %g s, without busy polling %g", held, idleHeld)
	}
	if flushed > idle/4 || flushed > held/8 {
		t.Errorf("flushed in the loop: %g s, held %g, without busy polling %g", flushed, held, idle)
	}
	if r := single / flushed; r < 0.9 || r > 1.1 {
		t.Errorf("without a list: %g s, with one that is flushed %g", single, flushed)
	}
	if idleHeld != idle {
		t.Errorf("without busy polling: %g s and %g", idleHeld, idle)
	}
	many := []string{"traffic.rr.flows=100", "nics.eth0.features.gro=off", "apps.netserver.busy_poll=0s", "duration=1.5s", "warmup=1.2s"}
	before, after := rtt(3, append(many, form+"single")...), rtt(3, append(many, form+"rfc_2019")...)
	if r := after / before; r < 0.95 || r > 1.05 {
		t.Errorf("100 clients: the list changes the round trip by %.3f, published 1.01", r)
	}
}
