/** What one decision costs after one Job has changed, by the size of the Plan. */
import type { CattlePlan } from '../../src/api/cattle/plan.ts';
import { DEFAULT_JOB_SETTINGS } from '../../src/dialects/cattle/config.ts';
import { cattle } from '../../src/dialects/cattle/dialect.ts';
import { jobOf } from '../../src/dialects/cattle/job.ts';
import { decideOn } from '../../src/engine/decide/decide.ts';
import { evaluationsFor } from '../../src/engine/decide/evaluate-target.ts';
import { gather, type Known } from '../../src/engine/observe/gather.ts';
import { targetTimes } from '../../src/engine/observe/watch-times.ts';
import { freshWorld, OwnWrites, viewsOf } from '../../src/engine/observe/world.ts';
import { DEFAULT_POLICY } from '../../src/engine/policy/rollout-policy.ts';
import { type Job, jobs, type KubeObject, type Node, nodes, pods, secrets } from '../../src/kube/resources.ts';
import { createStore } from '../../src/kube/watch/store.ts';
import { rfc3339, systemClock } from '../../src/util/clock.ts';
import { silentLogger } from '../../src/util/log.ts';
import { simulatedNode } from '../../tools/controlplane/simulated-nodes.ts';
import { median } from '../statistics.ts';
import { examplePlan, NAMESPACE } from './rig.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
/** One in ten is at work, half of the others are done. */
const SHARE = 10;
/** Odd, so that the median is one that was. */
const ROUNDS = 41;

/** Milliseconds of CPU time, which other processes do not change: the median of many decisions, each after another Job has changed. */
export function timeDecision(count: number): number {
  const scene = sceneOf(count);
  const times = Array.from({ length: ROUNDS }, (_, round) => {
    scene.change(round);
    const before = process.cpuUsage();
    scene.decide();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  });
  return median(times);
}

function sceneOf(count: number): { change(round: number): void; decide(): void } {
  const config = { name: 'suc', namespace: NAMESPACE, job: DEFAULT_JOB_SETTINGS };
  const dialect = cattle(config);
  const stores = new Map(
    [nodes, jobs, pods, secrets].map((kind) => [kind, createStore<KubeObject>(silentLogger)] as const),
  );
  const views = viewsOf(
    [...stores].map(([kind, store]) => {
      const get = (name: string, namespace?: string) =>
        store.get(namespace === undefined ? name : `${namespace}/${name}`);
      return [kind, { get, list: () => store.list(), resourceVersion: store.resourceVersion }] as const;
    }),
  );
  const ownWrites = new OwnWrites();
  const world = freshWorld(views, ownWrites);
  const draft = examplePlan(Math.ceil(count / SHARE));
  const plan: CattlePlan = { ...draft, metadata: { ...draft.metadata, uid: 'plan', creationTimestamp: rfc3339(NOW) } };
  const resolved = dialect.resolve(plan, world, NOW);
  const { version = '' } = resolved.stages[0] ?? {};
  const all = Array.from({ length: count }, (_, index) => nodeOf(index, index % 2 === 0 ? resolved.id : undefined));
  const working = all.filter((_, index) => index % 2 === 1).slice(0, Math.ceil(count / SHARE));
  const jobFor = (node: Node, active: number): Job => {
    const job = jobOf(config, { plan, node, version, hash: resolved.id, settings: config.job });
    const metadata = {
      ...job.metadata,
      uid: `job-${node.metadata.name}`,
      resourceVersion: String(active),
      creationTimestamp: rfc3339(NOW),
    };
    return { ...job, metadata, status: { active, startTime: rfc3339(NOW) } };
  };
  for (const node of all) stores.get(nodes)?.apply('ADDED', node);
  const writtenOnly = Math.ceil(working.length / SHARE);
  for (const node of working.slice(writtenOnly)) stores.get(jobs)?.apply('ADDED', jobFor(node, 1));
  // The watch does not show them yet.
  stores.get(jobs)?.advance('0');
  for (const node of working.slice(0, writtenOnly)) ownWrites.remember(jobs, jobFor(node, 1));
  const recorded = dialect.project({ ...dialect.resolve(plan, world, NOW), phase: 'running' }, plan, NOW);
  const watch = targetTimes();
  return {
    change: (round) => {
      const node = working[writtenOnly + (round % (working.length - writtenOnly))];
      if (node) stores.get(jobs)?.apply('MODIFIED', jobFor(node, 2 + round));
    },
    decide: () => {
      const now = systemClock.monotonic();
      const known: Known = { watch: (target, observation) => watch(target, observation, now) };
      decideOn(evaluationsFor(gather(dialect, recorded, world, NOW, known), DEFAULT_POLICY, NOW));
    },
  };
}

function nodeOf(index: number, hash: string | undefined): Node {
  const node = simulatedNode(`node-${index}.example.com`);
  const labels = { ...node.metadata.labels, ...(hash === undefined ? {} : { 'plan.upgrade.cattle.io/bench': hash }) };
  const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: rfc3339(NOW) }] as const;
  const metadata = { ...node.metadata, labels, uid: `node-${index}`, resourceVersion: '1' };
  return { ...node, metadata, status: { ...node.status, conditions: [...conditions] } };
}
