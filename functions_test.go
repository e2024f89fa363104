package napisim_test

import (
	"fmt"
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// This file keeps an index for readers who know the kernel: which code mirrors which function.
// The comment of each begins with the name of the kernel's function. docs/functions.md is
// written from it.

// kernelFile is a file of the kernel with those of its functions that the model mirrors.
type kernelFile struct{ name, functions string }

var kernelFiles = []kernelFile{
	{"kernel/softirq.c", `__raise_softirq_irqoff raise_softirq_irqoff raise_softirq local_softirq_pending invoke_softirq do_softirq
		__do_softirq handle_softirqs wakeup_softirqd run_ksoftirqd ksoftirqd_running should_wake_ksoftirqd ksoftirqd_run_begin
		ksoftirqd_run_end local_bh_disable local_bh_enable irq_exit open_softirq tasklet_schedule tasklet_hi_schedule tasklet_action_common
		raise_ktimers_thread run_ktimerd`},
	{"net/core/dev.c: NAPI", `netif_napi_add napi_enable napi_disable napi_schedule napi_schedule_prep ____napi_schedule net_rx_action
		napi_poll __napi_poll napi_complete_done napi_watchdog napi_set_threaded napi_thread_wait napi_threaded_poll napi_threaded_poll_loop`},
	{"net/core/dev.c: backlog", `netif_rx netif_rx_ni netif_rx_internal enqueue_to_backlog napi_schedule_rps process_backlog run_backlog_napi
		get_rps_cpu set_rps_cpu skb_flow_limit rps_record_sock_flow rps_trigger_softirq sd_has_rps_ipi_waiting
		net_rps_action_and_irq_enable`},
	{"net/core/dev.c: busy polling", `napi_busy_loop busy_poll_stop sk_busy_loop napi_suspend_irqs napi_resume_irqs`},
	{"fs/eventpoll.c", `ep_busy_loop ep_poll_callback ep_events_available ep_send_events`},
	{"net/core/dev.c: receive", `netif_receive_skb netif_receive_skb_list_internal __netif_receive_skb_core __netif_receive_skb_list_core`},
	{"net/core/gro.c", `napi_gro_receive napi_gro_frags dev_gro_receive gro_list_prepare gro_flush_oldest napi_gro_complete napi_gro_flush
		__napi_gro_flush_chain gro_flush_normal gro_normal_one gro_normal_list napi_get_frags skb_gro_receive skb_gro_receive_list`},
	{"net/core/netpoll.c", `poll_one_napi`},
	{"net/core/skbuff.c", `skb_attempt_defer_free skb_defer_free_flush napi_consume_skb napi_skb_free_stolen_head`},
	{"net/core/page_pool.c", `page_pool_alloc_pages page_pool_refill_alloc_cache page_pool_recycle_direct page_pool_put_page`},
	{"net/ipv4", `inet_gro_receive tcp_gro_receive udp_gro_receive udp_gro_receive_segment ip_rcv ip_list_rcv ip_list_rcv_finish
		udp_rcv __udp_enqueue_schedule_skb __skb_recv_udp udp_rmem_release skb_consume_udp tcp_v4_rcv tcp_add_backlog tcp_send_ack`},
}

// A mirror is a function of the model with the start of its comment.
type mirror struct{ name, file, says string }

var firstSentence = regexp.MustCompile(`(?s)^.*?(?:\.\s|$)`)

// mirrors returns the functions of simulated code that have a comment.
func mirrors(t *tree) []mirror {
	var all []mirror
	for _, s := range t.files {
		if !s.inCore() {
			continue
		}
		for _, decl := range s.ast.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Doc != nil {
				all = append(all, mirror{f.Name.Name, s.path, firstSentence.FindString(f.Doc.Text())})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b mirror) int { return strings.Compare(a.file, b.file) })
	return all
}

var (
	// said is what a comment begins with, "f is" or "f:" and names of the kernel's functions.
	said = regexp.MustCompile(`^\w+(?: is| mirrors|:)(?:\s+(?:[a-z0-9_]*_[a-z0-9_]*|and|with|or|around|the|a|what|inner|first|part|half|loop|end|of|contrary|test|handler|called)\b,?)*`)
	// aside is what it has in brackets.
	aside = regexp.MustCompile(`\([^)]*\)`)
)

// of returns those that mirror a function of the kernel: their comment begins with it, or has
// it in brackets.
func (k kernelFile) of(function string, all []mirror) []mirror {
	word := regexp.MustCompile(`\b` + function + `\b`)
	var found []mirror
	for _, m := range all {
		if word.MatchString(said.FindString(m.says)) || word.MatchString(strings.Join(aside.FindAllString(m.says, -1), " ")) {
			found = append(found, m)
		}
	}
	return found
}

// checkFunctions returns the index and the functions that it finds nowhere.
func checkFunctions(files []kernelFile, all []mirror) (doc string, missing []string) {
	var b strings.Builder
	b.WriteString("# Functions of the kernel and where they are mirrored\n\n" +
		"The comment of each function says which versions it mirrors. This file is written by\n" +
		"`go test . -run TestKernelFunctions -update` from those comments.\n")
	for _, k := range files {
		fmt.Fprintf(&b, "\n## %s\n\n| kernel | here |\n|---|---|\n", k.name)
		for function := range strings.FieldsSeq(k.functions) {
			found := k.of(function, all)
			if len(found) == 0 {
				missing = append(missing, fmt.Sprintf("%s (%s) is named by no comment", function, k.name))
			}
			var in []string
			for _, m := range found {
				in = append(in, fmt.Sprintf("`%s` in %s", m.name, m.file))
			}
			fmt.Fprintf(&b, "| `%s` | %s |\n", function, strings.Join(in, ", "))
		}
	}
	return b.String(), missing
}

func TestKernelFunctions(t *testing.T) {
	const file = "docs/functions.md"
	doc, missing := checkFunctions(kernelFiles, mirrors(repository(t)))
	report(t, missing)
	if *update {
		if err := os.WriteFile(file, []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != doc {
		t.Errorf("%s is not what the comments say: go test . -run TestKernelFunctions -update", file)
	}
}

func TestKernelFunctionsCanFail(t *testing.T) {
	tr, err := readTree(planted(map[string]string{
		"softirq/a.go":      "package softirq\n// doIt is do_it (v6.1): it\n// calls do_more. See do_late.\nfunc doIt() {}\nfunc do_none() {}",
		"softirq/a_test.go": "package softirq\n// TestIt tests do_test.\nfunc TestIt() {}",
	}))
	if err != nil {
		t.Fatal(err)
	}
	_, missing := checkFunctions([]kernelFile{{"x.c", "do_it do_more do_late do_none do_test do"}}, mirrors(tr))
	sameFindings(t, missing, []string{"do_more", "do_late", "do_none", "do_test", "do (x.c)"})
}
