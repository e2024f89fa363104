package trace

import "napisim/sim"

// points gives each Point its name and the writer of its arguments. The formats
// are those of the kernel's TP_printk; where kernels differ, that of 6.1.
var points = [numPoints]struct {
	name string
	args func(b []byte, e *Event) []byte
}{
	IRQHandlerEntry:     {"irq_handler_entry", irqEntry},
	IRQHandlerExit:      {"irq_handler_exit", irqExit},
	SoftirqRaise:        {"softirq_raise", softirq},
	SoftirqEntry:        {"softirq_entry", softirq},
	SoftirqExit:         {"softirq_exit", softirq},
	NAPIPoll:            {"napi_poll", napiPoll},
	NetifReceiveSKB:     {"netif_receive_skb", skb},
	NetifRx:             {"netif_rx", skb},
	NetDevQueue:         {"net_dev_queue", skb},
	NetDevXmit:          {"net_dev_xmit", xmit},
	NAPIGROReceiveEntry: {"napi_gro_receive_entry", groReceive},
	NAPIGROFragsEntry:   {"napi_gro_frags_entry", groFrags},
	NAPIGROReceiveExit:  {"napi_gro_receive_exit", groExit},
	NAPIGROFragsExit:    {"napi_gro_frags_exit", groExit},
	KfreeSKB:            {"kfree_skb", kfree},
	SchedSwitch:         {"sched_switch", schedSwitch},
	SchedWakeup:         {"sched_wakeup", wakeup},
	SchedWaking:         {"sched_waking", wakeup},
	HRTimerStart:        {"hrtimer_start", timerStart},
	HRTimerExpireEntry:  {"hrtimer_expire_entry", timerExpire},
	HRTimerExpireExit:   {"hrtimer_expire_exit", timerExit},
	RxMissed:            {"rx_missed", missed},
	Lost:                {"lost", nil},
}

func irqEntry(b []byte, e *Event) []byte {
	return field(integer(b, "irq=", e.A), " name=", e.S)
}

func irqExit(b []byte, e *Event) []byte {
	ret := "unhandled"
	if e.B != 0 {
		ret = "handled"
	}
	return field(integer(b, "irq=", e.A), " ret=", ret)
}

func softirq(b []byte, e *Event) []byte {
	b = field(integer(b, "vec=", e.A), " [action=", softirqName(e.A))
	return append(b, ']')
}

// softirqName returns the name of a vector in the order of the kernel's enum.
func softirqName(vec int64) string {
	names := [...]string{"HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"}
	if vec < 0 || vec >= int64(len(names)) {
		return "?"
	}
	return names[vec]
}

func napiPoll(b []byte, e *Event) []byte {
	dev := e.S
	if dev == "" {
		dev = "(no_device)"
	}
	b = pointer(b, "napi poll on napi struct ", e.A)
	b = field(b, " for device ", dev)
	return integer(integer(b, " work ", e.B), " budget ", e.C)
}

func skb(b []byte, e *Event) []byte {
	b = pointer(field(b, "dev=", e.S), " skbaddr=", e.A)
	return integer(b, " len=", e.B)
}

func xmit(b []byte, e *Event) []byte { return integer(skb(b, e), " rc=", e.C) }

func groReceive(b []byte, e *Event) []byte { return gro(b, e, " data_len=0", " nr_frags=0") }

// groFrags prints a frame that lies in one page, as drivers with napi_gro_frags
// hand them up.
func groFrags(b []byte, e *Event) []byte {
	return gro(b, e, string(integer(nil, " data_len=", e.B)), " nr_frags=1")
}

// gro prints the fields of the napi_gro_*_entry points. What the model does not
// have is printed as for a plain IPv4 frame.
func gro(b []byte, e *Event, dataLen, frags string) []byte {
	b = text(field(b, "dev=", e.S), " napi_id=0x")
	b = padded(b, e.D, 1, 16)
	b = pointer(text(b, " queue_mapping=0"), " skbaddr=", e.A)
	b = text(b, " vlan_tagged=0 vlan_proto=0x0000 vlan_tci=0x0000 protocol=0x0800 ip_summed=1 hash=0x")
	b = padded(b, e.C, 8, 16)
	l4 := int64(0)
	if e.C != 0 {
		l4 = 1
	}
	b = integer(integer(b, " l4_hash=", l4), " len=", e.B)
	b = integer(text(b, dataLen), " truesize=", e.E)
	b = text(b, " mac_header_valid=1 mac_header=-14")
	return text(text(b, frags), " gso_size=0 gso_type=0x0")
}

func kfree(b []byte, e *Event) []byte {
	b = integer(pointer(b, "skbaddr=", e.A), " protocol=", e.B)
	return field(field(b, " location=", e.S), " reason: ", e.T)
}

func schedSwitch(b []byte, e *Event) []byte {
	b = integer(field(b, "prev_comm=", e.Comm), " prev_pid=", int64(e.PID))
	b = field(integer(b, " prev_prio=", e.A), " prev_state=", e.T)
	b = integer(field(b, " ==> next_comm=", e.S), " next_pid=", e.B)
	return integer(b, " next_prio=", e.C)
}

func wakeup(b []byte, e *Event) []byte {
	b = integer(field(b, "comm=", e.S), " pid=", e.A)
	return padded(text(integer(b, " prio=", e.B), " target_cpu="), e.C, 3, 10)
}

func timerStart(b []byte, e *Event) []byte {
	expires := e.B / int64(sim.Nanosecond)
	b = field(pointer(b, "hrtimer=", e.A), " function=", e.S)
	b = integer(integer(b, " expires=", expires), " softexpires=", expires)
	return integer(field(b, " mode=", e.T), " was_armed=", e.C)
}

func timerExpire(b []byte, e *Event) []byte {
	b = field(pointer(b, "hrtimer=", e.A), " function=", e.S)
	return integer(b, " now=", int64(e.At/sim.Nanosecond))
}

func timerExit(b []byte, e *Event) []byte { return pointer(b, "hrtimer=", e.A) }

// missed follows the shape of the kernel's own lines.
func missed(b []byte, e *Event) []byte {
	return integer(integer(field(b, "dev=", e.S), " queue=", e.A), " frames=", e.B)
}

func groExit(b []byte, e *Event) []byte { return integer(b, "ret=", e.A) }
