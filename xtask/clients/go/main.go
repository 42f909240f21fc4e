// go-redis's ClusterClient at work: see xtask/clients/README.md.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	workers  = 4
	entries  = 60
	pipeline = 6
	pause    = 3 * time.Millisecond
)

var background = context.Background()

// passes tells whether users have to be ready for the error while nodes come and go.
func passes(err error) bool {
	var network net.Error
	if errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, redis.ErrPoolTimeout) {
		return true
	}
	for _, code := range []string{"CLUSTERDOWN", "TRYAGAIN", "MOVED", "UNKNOWNRESULT"} {
		if strings.HasPrefix(err.Error(), code) {
			return true
		}
	}
	return false
}

// entry is one key, or three with one hash tag that are always written together.
type entry struct {
	keys         []string
	acknowledged string
	doubt        string
}

// judge tells what is wrong with these values of the keys; "" is none.
func (e *entry) judge(values []string) string {
	same := len(values) == len(e.keys)
	for _, value := range values {
		same = same && value == values[0]
	}
	if same && (values[0] == e.acknowledged || e.doubt != "" && values[0] == e.doubt) {
		return ""
	}
	return fmt.Sprintf("%s: read %q, acknowledged %q, in doubt %q", e.keys[0], values, e.acknowledged, e.doubt)
}

type phase struct {
	Name       string         `json:"name"`
	Operations int            `json:"operations"`
	Errors     map[string]int `json:"errors"`
	SilenceMs  int64          `json:"silence_ms"`
}

// report is what all workers saw, by phase.
type report struct {
	mutex      sync.Mutex
	Library    string         `json:"library"`
	Phases     []*phase       `json:"phases"`
	Unexpected map[string]int `json:"unexpected"`
	Wrong      []string       `json:"wrong"`
	Wrongs     int            `json:"wrongs"`
	Doubts     int            `json:"doubts"`
	Keys       int            `json:"keys"`
	Counts     map[string]int `json:"counts"`
}

func (r *report) begin(name string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.Phases = append(r.Phases, &phase{Name: name, Errors: map[string]int{}})
}

func (r *report) success(kind string, silence time.Duration, writes int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.Counts) == 0 {
		fmt.Println("ready")
	}
	now := r.Phases[len(r.Phases)-1]
	now.Operations++
	now.SilenceMs = max(now.SilenceMs, silence.Milliseconds())
	r.Counts[kind]++
	r.Counts["acknowledged"] += writes
}

func (r *report) failure(step string, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	text := err.Error()
	kind := fmt.Sprintf("%s: %s", step, text[:min(len(text), 80)])
	r.Phases[len(r.Phases)-1].Errors[kind]++
	if !passes(err) {
		r.Unexpected[kind]++
	}
}

func (r *report) mistake(what string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.Wrongs++
	if len(r.Wrong) < 20 {
		r.Wrong = append(r.Wrong, what)
	}
}

type worker struct {
	number, made, value, turn int
	cluster, replicas         *redis.ClusterClient
	report                    *report
	singles, groups, left     []*entry
	last                      time.Time
}

func (w *worker) start() {
	for range entries {
		w.singles = append(w.singles, w.make(1))
		w.groups = append(w.groups, w.make(3))
	}
	w.last = time.Now()
}

func (w *worker) make(size int) *entry {
	w.made++
	name := fmt.Sprintf("go-redis:%d:%d", w.number, w.made)
	if size == 1 {
		return &entry{keys: []string{name}}
	}
	made := &entry{}
	for at := range size {
		made.keys = append(made.keys, fmt.Sprintf("{%s}%d", name, at))
	}
	return made
}

func (w *worker) run(ends context.Context) {
	steps := []struct {
		name string
		act  func() error
	}{
		{"set", w.set}, {"get", w.get}, {"pipeline", w.pipeline}, {"mset", w.mset},
		{"mget", w.mget}, {"transact", w.transact}, {"replica", w.replica},
	}
	for ends.Err() == nil {
		w.turn++
		step := steps[w.turn%len(steps)]
		if err := step.act(); err != nil {
			w.report.failure(step.name, err)
		}
		time.Sleep(pause)
	}
}

func (w *worker) fresh() string {
	w.value++
	return fmt.Sprint(w.value)
}

func (w *worker) success(kind string, writes int) {
	now := time.Now()
	w.report.success(kind, now.Sub(w.last), writes)
	w.last = now
}

// settle notes that a write was acknowledged, or that nobody can say.
func (w *worker) settle(all []*entry, one *entry, value string, err error) {
	if err == nil {
		one.acknowledged = value
		return
	}
	one.doubt = value
	w.left = append(w.left, one)
	all[slices.Index(all, one)] = w.make(len(one.keys))
}

func (w *worker) write(kind string, all []*entry, act func(*entry, string) error) error {
	one, value := all[w.turn/7%entries], w.fresh()
	err := act(one, value)
	w.settle(all, one, value, err)
	if err == nil {
		w.success(kind, 1)
	}
	return err
}

func (w *worker) read(kind string, all []*entry, ask func(*entry) ([]string, error)) error {
	one := all[w.turn*31%entries]
	values, err := ask(one)
	if err != nil {
		return err
	}
	if wrong := one.judge(values); wrong != "" {
		w.report.mistake(kind + ": " + wrong)
	}
	w.success(kind, 0)
	return nil
}

func (w *worker) set() error {
	return w.write("sets", w.singles, func(one *entry, value string) error {
		return w.cluster.Set(background, one.keys[0], value, 0).Err()
	})
}

func get(from *redis.ClusterClient) func(*entry) ([]string, error) {
	return func(one *entry) ([]string, error) {
		value, err := from.Get(background, one.keys[0]).Result()
		if errors.Is(err, redis.Nil) {
			err = nil
		}
		return []string{value}, err
	}
}

func (w *worker) get() error {
	return w.read("reads", w.singles, get(w.cluster))
}

func (w *worker) replica() error {
	return w.read("replica_reads", w.singles, get(w.replicas))
}

func (w *worker) mset() error {
	return w.write("groups", w.groups, func(one *entry, value string) error {
		var pairs []any
		for _, key := range one.keys {
			pairs = append(pairs, key, value)
		}
		return w.cluster.MSet(background, pairs...).Err()
	})
}

func mget(from *redis.ClusterClient, one *entry) ([]string, error) {
	replies, err := from.MGet(background, one.keys...).Result()
	var values []string
	for _, reply := range replies {
		text, _ := reply.(string)
		values = append(values, text)
	}
	return values, err
}

func (w *worker) mget() error {
	return w.read("groups", w.groups, func(one *entry) ([]string, error) { return mget(w.cluster, one) })
}

func (w *worker) transact() error {
	return w.write("transactions", w.groups, func(one *entry, value string) error {
		_, err := w.cluster.TxPipelined(background, func(tx redis.Pipeliner) error {
			for _, key := range one.keys {
				tx.Set(background, key, value, 0)
			}
			return nil
		})
		return err
	})
}

func (w *worker) pipeline() error {
	type written struct {
		one   *entry
		value string
		reply *redis.StatusCmd
	}
	var all []written
	// What failed, if anything did, is at each command.
	_, _ = w.cluster.Pipelined(background, func(pipe redis.Pipeliner) error {
		for at := range pipeline {
			one, value := w.singles[(w.turn*13+at)%entries], w.fresh()
			all = append(all, written{one, value, pipe.Set(background, one.keys[0], value, 0)})
		}
		return nil
	})
	failed := false
	for _, set := range all {
		err := set.reply.Err()
		w.settle(w.singles, set.one, set.value, err)
		if err != nil {
			failed = true
			w.report.failure("pipeline", err)
		}
	}
	if !failed {
		w.success("pipelines", pipeline)
	}
	return nil
}

// audit reads everything again; what cannot be read for a minute is wrong.
func audit(cluster *redis.ClusterClient, all []*entry, report *report) {
	until := time.Now().Add(time.Minute)
	for _, one := range all {
		values, err := mget(cluster, one)
		for err != nil && passes(err) && time.Now().Before(until) {
			time.Sleep(100 * time.Millisecond)
			values, err = mget(cluster, one)
		}
		wrong := one.judge(values)
		if err != nil {
			wrong = one.keys[0] + ": " + err.Error()
		}
		if wrong != "" {
			report.mistake("at the end: " + wrong)
		}
	}
}

func main() {
	addresses := strings.Split(os.Args[1], ",")
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addresses})
	replicas := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addresses, ReadOnly: true})
	report := &report{
		Library: "go-redis " + redis.Version(), Unexpected: map[string]int{}, Wrong: []string{}, Counts: map[string]int{},
	}
	report.begin("connects")
	ends, end := context.WithCancel(background)
	var all []*worker
	var running sync.WaitGroup
	for number := range workers {
		one := &worker{number: number, cluster: cluster, replicas: replicas, report: report}
		one.start()
		all = append(all, one)
		running.Go(func() { one.run(ends) })
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		report.begin(strings.TrimSpace(lines.Text()))
	}
	end()
	running.Wait()
	for _, one := range all {
		written := slices.Concat(one.singles, one.groups, one.left)
		audit(cluster, written, report)
		report.Doubts += len(one.left)
		for _, entry := range written {
			report.Keys += len(entry.keys)
		}
	}
	text, err := json.Marshal(report)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
	if report.Wrongs > 0 || len(report.Unexpected) > 0 {
		os.Exit(1)
	}
}
