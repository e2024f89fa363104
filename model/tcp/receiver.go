package tcp

import (
	"errors"
	"fmt"
	"math/bits"

	"napisim/model"
	"napisim/sim"
)

// FirstSeq is the sequence number of the first data byte: the SYN took number 0.
const FirstSeq uint64 = 1

// ReceiverConfig describes the receive half of a socket. DefaultReceiverConfig
// gives the values of a Linux 6.1 host.
type ReceiverConfig struct {
	// Flow is written into the acknowledgements, and whether they are of IPv6.
	Flow model.FlowID
	IPv6 bool
	// MSS is the segment size that this end announced, without the timestamp
	// option (tp->advmss): 1448 at an MTU of 1500.
	MSS int
	// Rmem is net.ipv4.tcp_rmem: minimum, default and maximum of the receive
	// buffer in bytes. The minimum is not used: the model has no memory pressure.
	Rmem [3]int
	// RmemMax is net.core.rmem_max. It caps RcvBuf and, with Rmem[2], decides the
	// window scale.
	RmemMax int
	// RcvBuf is the value given to SO_RCVBUF in bytes. The kernel doubles it and
	// stops autotuning; 0 leaves the buffer to autotuning.
	RcvBuf int
	// RcvLowat is SO_RCVLOWAT: the reader is woken when so many bytes can be read.
	RcvLowat int
	// SndBuf is the send buffer of the same socket in bytes. Only the backlog limit
	// depends on it.
	SndBuf int
	// ModerateRcvbuf is net.ipv4.tcp_moderate_rcvbuf: receive buffer autotuning.
	ModerateRcvbuf bool
	// SubtractUnread makes autotuning leave out bytes that wait to be read, as
	// since Linux 6.17.
	SubtractUnread bool
	// NoGrowthTerm makes autotuning follow the reader without running ahead of a sender
	// in slow start, as before Linux 4.19.
	NoGrowthTerm bool
	// ScalingRatio is how many 256ths of the receive buffer are announced as
	// window before the first segment tells better, as since Linux 6.6 (65 in 6.8,
	// 128 in 6.12). 0 means what AdvWinScale says, up to 6.5.
	ScalingRatio int
	// AdvWinScale is net.ipv4.tcp_adv_win_scale: above 0 all but 1/2^n of the buffer is
	// announced, otherwise 1/2^-n of it.
	AdvWinScale int
	// AckIfDrained lets a full segment be acknowledged at once also when the window would
	// shrink, if the application has read everything before it, as since Linux 4.19.
	AckIfDrained bool
	// CompSACKs is net.ipv4.tcp_comp_sack_nr, how many duplicate ACKs are held back (44
	// since Linux 4.19). 0 sends each at once.
	CompSACKs int
	// CompSACKFirst are the duplicate ACKs that go out before any is held back, so that a
	// fast retransmission is not delayed: 3 since Linux 4.20.
	CompSACKFirst int
	// CompSACKDelay is net.ipv4.tcp_comp_sack_delay_ns: how long at most.
	CompSACKDelay sim.Time
	// Backlog is the limit of the backlog while the socket is locked by its user.
	Backlog BacklogRule
	// BacklogCoalesce merges contiguous skbs in the backlog, as since Linux 5.0.
	BacklogCoalesce bool
	// DeferBacklogAcks holds ACKs back until the backlog has been worked off, one for all,
	// as since Linux 6.7 (net.ipv4.tcp_backlog_ack_defer).
	DeferBacklogAcks bool
	// GrowLessHead leaves the descriptor and the head of an skb out of the overhead that keeps
	// the window from growing, if all payload is in fragments: they are freed when it is
	// merged into another one (tcp_grow_window with truesize_adjust, since Linux 5.16).
	GrowLessHead bool
	// HeadTruesize is the truesize of the head of an skb whose payload is in pages; 0 is
	// that of a head of 512 bytes.
	HeadTruesize int
	// ClockOffset is how far the clock of timestamps, which has milliseconds, is ahead of
	// simulated time.
	ClockOffset sim.Time
	// InitialRTT is the round-trip time that the handshake has measured; 0 means
	// none. It bounds the delay of ACKs.
	InitialRTT sim.Time
}

// BacklogRule is how tcp_add_backlog limits the backlog and the receive queue
// together.
type BacklogRule uint8

// The rules by kernel version.
const (
	// BacklogSndbuf allows rcvbuf + sndbuf + 64 KiB, as Linux 4.19 to 5.19.
	BacklogSndbuf BacklogRule = iota
	// BacklogHalfSndbuf allows rcvbuf + sndbuf/2 + 64 KiB, as Linux 6.1 to 6.9.
	BacklogHalfSndbuf
	// BacklogDoubleRcvbuf allows 2*rcvbuf + sndbuf/2 + 64 KiB, since Linux 6.12.
	BacklogDoubleRcvbuf

	numBacklogRules
)

// A choice is what one value of a behaviour means for a socket.
type choice struct {
	behaviour, value string
	set              func(*ReceiverConfig)
}

// choices is the table of behaviours, each with its values in the order of the kernel's
// history.
var choices = []choice{
	{"tcp_win_scaling", "adv_win_scale", func(c *ReceiverConfig) { c.ScalingRatio = 0 }},
	{"tcp_win_scaling", "ratio_65", func(c *ReceiverConfig) { c.ScalingRatio = 1200 * 256 / 4672 }},
	{"tcp_win_scaling", "ratio_128", func(c *ReceiverConfig) { c.ScalingRatio = 128 }},

	{"tcp_backlog_limit", "rcvbuf_sndbuf", func(c *ReceiverConfig) { c.Backlog = BacklogSndbuf }},
	{"tcp_backlog_limit", "half_sndbuf", func(c *ReceiverConfig) { c.Backlog = BacklogHalfSndbuf }},
	{"tcp_backlog_limit", "double_rcvbuf", func(c *ReceiverConfig) { c.Backlog = BacklogDoubleRcvbuf }},

	{"tcp_backlog_coalesce", "never", func(c *ReceiverConfig) { c.BacklogCoalesce = false }},
	{"tcp_backlog_coalesce", "contiguous", func(c *ReceiverConfig) { c.BacklogCoalesce = true }},

	{"tcp_backlog_ack", "each", func(c *ReceiverConfig) { c.DeferBacklogAcks = false }},
	{"tcp_backlog_ack", "deferred", func(*ReceiverConfig) {}}, // as the sysctl says

	{"tcp_sack_compression", "never", func(c *ReceiverConfig) { c.CompSACKs = 0 }},
	{"tcp_sack_compression", "from_first", func(c *ReceiverConfig) { c.CompSACKFirst = 0 }},
	{"tcp_sack_compression", "after_three", func(c *ReceiverConfig) { c.CompSACKFirst = 3 }},

	{"tcp_drs", "reader", func(c *ReceiverConfig) { c.NoGrowthTerm, c.SubtractUnread = true, false }},
	{"tcp_drs", "growth", func(c *ReceiverConfig) { c.NoGrowthTerm, c.SubtractUnread = false, false }},
	{"tcp_drs", "growth_less_unread", func(c *ReceiverConfig) { c.NoGrowthTerm, c.SubtractUnread = false, true }},

	{"tcp_ack_now", "window", func(c *ReceiverConfig) { c.AckIfDrained = false }},
	{"tcp_ack_now", "window_or_drained", func(c *ReceiverConfig) { c.AckIfDrained = true }},

	{"tcp_grow_window", "truesize", func(c *ReceiverConfig) { c.GrowLessHead = false }},
	{"tcp_grow_window", "truesize_less_head", func(c *ReceiverConfig) { c.GrowLessHead = true }},
}

// Behaviours lists the behaviours of a receiver.
func Behaviours() (all []string) {
	for i, c := range choices {
		if i == 0 || choices[i-1].behaviour != c.behaviour {
			all = append(all, c.behaviour)
		}
	}
	return all
}

// BehaviourValues lists the values of a behaviour in the order of history.
func BehaviourValues(behaviour string) (all []string) {
	for _, c := range choices {
		if c.behaviour == behaviour {
			all = append(all, c.value)
		}
	}
	return all
}

// Choose makes a socket behave as a value of a behaviour says. It overrides sysctls that
// a version does not have, so it is called after they were set.
func (c *ReceiverConfig) Choose(behaviour, value string) error {
	for i := range choices {
		if choices[i].behaviour == behaviour && choices[i].value == value {
			choices[i].set(c)
			return nil
		}
	}
	return fmt.Errorf("%s: unknown behaviour %q", behaviour, value)
}

// DefaultReceiverConfig returns the socket of a Linux 6.1 host behind an MTU of
// 1500 that leaves its buffer to autotuning.
func DefaultReceiverConfig() ReceiverConfig {
	return ReceiverConfig{
		MSS:            1448,
		Rmem:           [3]int{4096, 131072, 6 << 20},
		RmemMax:        212992,
		RcvLowat:       1,
		SndBuf:         87040, // what tcp_wmem and ten segments give an idle socket
		ModerateRcvbuf: true,
		AdvWinScale:    1,
		AckIfDrained:   true,
		GrowLessHead:   true,
		CompSACKs:      44,
		CompSACKFirst:  3,
		CompSACKDelay:  sim.Millisecond,
		Backlog:        BacklogHalfSndbuf,

		BacklogCoalesce: true,
	}
}

func (c *ReceiverConfig) pagedHead() int {
	if c.HeadTruesize > 0 {
		return c.HeadTruesize
	}
	return pagedHead
}

// Validate returns every fault of the configuration.
func (c *ReceiverConfig) Validate() []error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	check(c.MSS >= minMSS && c.MSS <= maxMSS, "mss %d is not within %d and %d", c.MSS, minMSS, maxMSS)
	check(c.Rmem[0] > 0 && c.Rmem[0] <= c.Rmem[1] && c.Rmem[1] <= c.Rmem[2], "tcp_rmem %v must be positive and must not fall", c.Rmem)
	check(c.Rmem[1] >= minRcvbuf, "tcp_rmem[1] %d is below the smallest buffer, %d", c.Rmem[1], minRcvbuf)
	check(c.Rmem[2] <= 1<<30, "tcp_rmem[2] %d is above 1 GiB", c.Rmem[2])
	check(c.RmemMax > 0 && c.RmemMax <= 1<<30, "rmem_max %d is not within 1 and 1 GiB", c.RmemMax)
	check(c.RcvBuf >= 0, "rcvbuf %d is negative", c.RcvBuf)
	check(c.RcvLowat >= 1, "rcvlowat %d is below 1", c.RcvLowat)
	check(c.SndBuf >= 0, "sndbuf %d is negative", c.SndBuf)
	check(c.ScalingRatio >= 0 && c.ScalingRatio <= 256, "scaling ratio %d is not within 0 and 256", c.ScalingRatio)
	check(c.AdvWinScale >= -31 && c.AdvWinScale <= 31, "adv_win_scale %d is not within -31 and 31", c.AdvWinScale)
	check(c.CompSACKFirst >= 0, "comp_sack_first %d is negative", c.CompSACKFirst)
	check(c.CompSACKs >= 0, "comp_sack_nr %d is negative", c.CompSACKs)
	check(c.CompSACKDelay >= 0, "comp_sack_delay %v is negative", c.CompSACKDelay)
	check(c.Backlog < numBacklogRules, "backlog rule %d is unknown", c.Backlog)
	check(c.InitialRTT >= 0, "initial RTT %v is negative", c.InitialRTT)
	return faults
}

const (
	minMSS = 88 // TCP_MIN_MSS
	maxMSS = 65483
	// minRcvbuf is SOCK_MIN_RCVBUF: one full segment of the smallest kind.
	minRcvbuf = 2048 + model.SKBHead
)

// ReceiverStats counts what the receive half did. Counters that Linux has too
// carry their SNMP names. Packets are segments where it says so, otherwise skbs: a
// GRO superframe is one.
type ReceiverStats struct {
	// Segments are the wire segments taken over, SKBs the skbs that held them.
	Segments, SKBs int64
	// Control are the segments without payload: probes, pure ACKs and bare FINs.
	Control int64
	// SegmentsRead are those whose last byte the application has copied.
	SegmentsRead int64
	// BytesQueued is how far RCV.NXT has come, BytesRead what was copied of it.
	BytesQueued, BytesRead int64
	// Lost counts segments that went no further, by reason.
	Lost model.Losses
	// AcksSent are all ACKs built, WindowUpdates those that CleanupRbuf asked for,
	// DelayedACKs those of the timer, ZeroWindows those that announced no window.
	AcksSent, WindowUpdates, DelayedACKs, ZeroWindows int64
	// DupACKs are the ACKs sent while data was missing, CompressedACKs those that
	// SACK compression spared.
	DupACKs, CompressedACKs int64
	// TCPRcvCoalesce are skbs that were merged with the one before them.
	TCPRcvCoalesce int64
	// TCPBacklogCoalesce are skbs that were merged in the backlog.
	TCPBacklogCoalesce int64
	// TCPOFOQueue are skbs that arrived out of order, TCPOFOMerge those made
	// redundant by others, TCPOFODrop those refused for want of memory.
	TCPOFOQueue, TCPOFOMerge, TCPOFODrop int64
	// TCPDSACKOldSent and TCPDSACKOfoSent are duplicates reported to the sender.
	TCPDSACKOldSent, TCPDSACKOfoSent int64
	// PruneCalled are the searches for memory, RcvPruned those that failed and
	// OfoPruned those that threw out-of-order data away.
	PruneCalled, RcvPruned, OfoPruned int64
	// TCPRcvCollapsed are skbs copied into denser ones.
	TCPRcvCollapsed int64
	// TCPRcvQDrop are skbs in order that were refused for want of memory.
	TCPRcvQDrop int64
	// TCPZeroWindowDrop are skbs that arrived when the window was closed.
	TCPZeroWindowDrop int64
	// TCPBacklogDrop are skbs that found the backlog full.
	TCPBacklogDrop int64
}

// Receiver mirrors the receive half of struct tcp_sock. It is no actor: code on a
// simulated CPU calls it at the instant that it passes as now, which never goes
// back. Receiver needs no locking, since exactly one piece of code runs at a time;
// what a locked socket means is the caller's to model (see AddBacklog).
type Receiver struct {
	cfg   ReceiverConfig
	pool  *model.SKBPool
	stats ReceiverStats

	queue ring[entry] // in order, from copied to rcvNxt
	ofo   []entry     // beyond rcvNxt, ascending

	rcvNxt, copied uint64
	fin            bool // RCV.NXT includes a FIN

	memory
	ack       ackState
	sacks     sackState
	rtt       rttState
	drs       drsState
	tsRecent  uint32
	ipid      uint16
	lastClock sim.Time
	arrivals  []sim.Time
}

// NewReceiver returns the receive half of an established connection. The pool
// gives it skbs to carry pages home when queues are collapsed; it is the pool that
// the caller frees skbs to. The configuration must be valid.
func NewReceiver(cfg ReceiverConfig, pool *model.SKBPool) *Receiver {
	if faults := cfg.Validate(); len(faults) > 0 {
		panic(fmt.Sprintf("tcp: receiver: %v", errors.Join(faults...)))
	}
	r := &Receiver{cfg: cfg, pool: pool, rcvNxt: FirstSeq, copied: FirstSeq}
	r.initMemory()
	r.ack = ackState{rcvMSS: max(min(cfg.MSS, int(r.rcvWnd/2), defaultMSS), minMSS), wup: FirstSeq}
	r.drs = drsState{space: min(r.rcvWnd, r.ssthresh, int64(10*cfg.MSS)), seq: FirstSeq}
	r.rtt.rtt = cfg.InitialRTT
	return r
}

// defaultMSS is TCP_MSS_DEFAULT, what rcv_mss assumes before data has come.
const defaultMSS = 536

// clock checks that time moves forward: a caller that still owes simulated time
// would otherwise queue data in another core's past.
func (r *Receiver) clock(now sim.Time) {
	if now < r.lastClock {
		panic(&sim.Fault{
			Component: fmt.Sprintf("tcp receiver of flow %d", r.cfg.Flow), At: now,
			Value: fmt.Sprintf("called after %v: a debt was not paid", r.lastClock),
		})
	}
	r.lastClock = now
}

// Stats returns the counters.
func (r *Receiver) Stats() ReceiverStats { return r.stats }

// RcvNxt returns RCV.NXT: all bytes below it have arrived.
func (r *Receiver) RcvNxt() uint64 { return r.rcvNxt }

// Readable returns the number of bytes that a read could copy.
func (r *Receiver) Readable() int {
	n := int(r.rcvNxt - r.copied)
	if r.fin && n > 0 {
		n--
	}
	return n
}

// EOF reports whether the peer has finished and everything before has been read.
func (r *Receiver) EOF() bool { return r.fin && r.Readable() == 0 }

// Window returns the window that the peer may still use, in bytes from RCV.NXT. At
// the start of a connection it is what the handshake has announced.
func (r *Receiver) Window() int { return int(r.window()) }

// RmemAlloc returns sk_rmem_alloc: the truesize of everything queued.
func (r *Receiver) RmemAlloc() int { return r.rmem }

// Rcvbuf returns sk_rcvbuf, which autotuning raises.
func (r *Receiver) Rcvbuf() int { return r.rcvbuf }

// QueuedSKBs returns the number of skbs in order and out of order.
func (r *Receiver) QueuedSKBs() (inOrder, outOfOrder int) { return r.queue.len(), len(r.ofo) }

// RTT returns the receiver's own estimate of the round-trip time, 0 before the
// first.
func (r *Receiver) RTT() sim.Time { return r.rtt.rtt }

// Close hands back everything that is queued, at the end of a run and after the last
// Check: the ledgers do not close without it.
func (r *Receiver) Close(free *model.SKBList) {
	for r.queue.len() > 0 {
		r.release(r.queue.pop().s, free)
	}
	for _, e := range r.ofo {
		r.release(e.s, free)
	}
	r.ofo = r.ofo[:0]
}

// release uncharges an skb that has left the queues and gives it to the caller.
func (r *Receiver) release(s *model.SKB, free *model.SKBList) {
	r.rmem -= s.Truesize
	free.PushBack(s)
}

// Check returns an error if the ledgers of bytes, segments or memory do not close,
// or if a queue is out of order. It walks the queues.
func (r *Receiver) Check() error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf("tcp receiver of flow %d: "+format, append([]any{r.cfg.Flow}, args...)...))
		}
	}
	var bytes, segments int64
	truesize := 0
	seq := r.copied
	for i := range r.queue.len() {
		e := r.queue.at(i)
		if e.done {
			truesize += e.s.Truesize
			continue
		}
		check(e.s.Frame.Seq+uint64(e.s.Consumed) == seq, "receive queue continues at %d, not %d", e.s.Frame.Seq+uint64(e.s.Consumed), seq)
		check(!e.joined || i > 0 && r.queue.at(i-1).end() == e.s.Frame.Seq, "skb at %d is joined to none", e.s.Frame.Seq)
		seq = e.s.EndSeq()
		bytes += int64(e.s.Payload - e.s.Consumed)
		segments += int64(payloadSegs(e.s) - endedBy(e.s, e.s.Consumed))
		truesize += e.s.Truesize
	}
	check(seq == r.rcvNxt, "receive queue ends at %d, RCV.NXT is %d", seq, r.rcvNxt)
	check(bytes == int64(r.Readable()), "%d bytes queued, %d readable", bytes, r.Readable())
	prev := r.rcvNxt
	for i, e := range r.ofo {
		check(e.end() > prev && (i == 0 || e.s.Frame.Seq > r.ofo[i-1].s.Frame.Seq) && e.s.Frame.Seq > r.rcvNxt,
			"out-of-order queue: [%d, %d) after %d", e.s.Frame.Seq, e.end(), prev)
		check(!e.joined || prev == e.s.Frame.Seq, "out-of-order skb at %d is joined to none", e.s.Frame.Seq)
		prev = e.end()
		segments += int64(payloadSegs(e.s))
		truesize += e.s.Truesize
	}
	check(truesize == r.rmem, "queues charge %d bytes, rmem_alloc is %d", truesize, r.rmem)
	st := &r.stats
	check(st.BytesQueued == st.BytesRead+int64(r.Readable()), "bytes: %d queued, %d read + %d in socket", st.BytesQueued, st.BytesRead, r.Readable())
	check(st.Segments == st.SegmentsRead+segments+st.Lost.Total()+st.Control, "segments: %d in, %d read + %d in socket + %d lost + %d control",
		st.Segments, st.SegmentsRead, segments, st.Lost.Total(), st.Control)
	return errors.Join(faults...)
}

// windowScale returns the shift that Linux negotiates: the smallest with which the
// largest buffer fits into the 16 bits of the header.
func windowScale(space int) uint {
	return uint(min(max(bits.Len(uint(space))-16, 0), 14))
}
