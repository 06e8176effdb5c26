/** Owns the signal over SSH: work is begun on a host, and its Node tells how far it is. */
import { withoutCordon } from '../../drain/cordon.ts';
import type { DrainDelegation, Instruction, Signal } from '../../engine/dialect.ts';
import type { Observation } from '../../engine/model/observed.ts';
import type { Rollout, Stage, Target } from '../../engine/model/recorded.ts';
import type { TimedStep } from '../../engine/policy/rollout-policy.ts';
import { nodes } from '../../kube/resources.ts';
import type { Node } from '../../kube/types.ts';
import type { HostUpgrade, HostUpgrades, Part } from './host-upgrades.ts';
import { type Report, reportOn } from './report.ts';

/** The stage whose host runs `kubeadm upgrade apply`. */
export const LEADER = 'leader';

/** As reports name them. */
export const STAGE = 'Stage';
export const DRAIN = 'Drain';
/** What kubeadm and kubelets take is bounded by the time for the whole host only. */
const PARTS: Readonly<Record<string, TimedStep>> = { [STAGE]: 'download', [DRAIN]: 'drain' };

/** `works` is undefined for whoever only looks. */
export function sshSignal(works: HostUpgrades | undefined): Signal {
  return {
    read: (world, rollout, stage, target) => observe(world.get(nodes, target.name), works, rollout, stage, target),
    send: (_world, rollout, { stage, target }) =>
      works && begun(async () => await works.begin(workOf(rollout, stage, target))),
    acknowledge: (_world, _rollout, _stage, target) => works && begun(() => works.acknowledge(target)),
    cancel: (_world, _rollout, _stage, target, { message }) =>
      works && begun(async () => await works.stop(target, message)),
    finish(world, _rollout, stage, { name }) {
      const node = world.get(nodes, name);
      const open = node && drains(stage) ? withoutCordon(node) : node;
      return open === node || !open ? undefined : { kind: 'replace', resource: nodes, object: open };
    },
  };
}

/** A host that failed after that stays as it is, cordoned: nobody knows what it can carry. */
export const drainDelegation: DrainDelegation = {
  always: true,
  nodeOf(stage, target, world) {
    const node = world.get(nodes, target.name);
    const isDoubtful = target.state === 'failed' && !isUntouched(reportOn(node), target);
    return drains(stage) && !isDoubtful ? node : undefined;
  },
};

export function versionOf(node: Node | undefined): string | undefined {
  return node?.status?.nodeInfo?.kubeletVersion;
}

function partsOf({ procedure }: Stage): readonly Part[] {
  return procedure === 'kubeadm' || procedure === 'kubelet' ? [procedure] : ['kubeadm', 'kubelet'];
}

/** Pods leave for a kubelet; what kubeadm replaces on a host is none of theirs. */
function drains(stage: Stage): boolean {
  return partsOf(stage).includes('kubelet');
}

function isUntouched(report: Report | undefined, { key }: Target): boolean {
  return report?.target !== key || report.touched !== true;
}

function workOf({ source }: Rollout, stage: Stage, target: Target): HostUpgrade {
  const { id, version } = stage;
  return { rollout: source.uid, target, version, verb: id === LEADER ? 'apply' : 'node', parts: partsOf(stage) };
}

function begun(begin: () => Promise<void> | void): Instruction {
  return { kind: 'begin', begin: async () => await begin() };
}

/** Work that the process which must do it does not do was cut off with an earlier process: it is to be begun again. */
function observe(
  node: Node | undefined,
  works: HostUpgrades | undefined,
  { source }: Rollout,
  stage: Stage,
  target: Target,
): Observation {
  const report = reportOn(node);
  if (!report || report.rollout !== source.uid || report.target !== target.key) {
    return works?.isAt(target) ? { kind: 'sent', attempt: target.since, since: target.since } : { kind: 'none' };
  }
  const { attempt, since, step, from, spent, state, touched, message = '' } = report;
  const seen = { attempt, since, report: { from, spent } };
  const isThere = !drains(stage) || versionOf(node) === stage.version;
  if (state === 'failed') return { kind: 'failed', message, ...seen };
  if (state === 'finished' && isThere) return { kind: 'succeeded', ...seen };
  if (state === 'working' && works && !works.isAt(target)) return { kind: 'none' };
  const isWaiting = step === DRAIN && (works?.isWaiting(target) ?? true);
  const waitsFor = isWaiting ? 'drain' : undefined;
  return { kind: 'working', step, ...seen, part: PARTS[step], waitsFor, cancellable: touched !== true };
}
