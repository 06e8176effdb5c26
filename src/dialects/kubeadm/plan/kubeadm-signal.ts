/** Starts the upgrade of a host over SSH, and reads its progress from an annotation of its Node. */

import { z } from 'zod';
import { withoutCordon } from '../../../drain/cordon-marks.ts';
import type { DrainDelegation } from '../../../engine/contract/features.ts';
import type { Instruction, Signal } from '../../../engine/contract/signal.ts';
import type { Stage, Target } from '../../../engine/model/rollout.ts';
import type { TimedStep } from '../../../engine/policy/rollout-policy.ts';
import { type KubeObject, kubeletVersionOf, nodes } from '../../../kube/resources.ts';
import { parseJson } from '../../../util/json.ts';
import { ownMember } from '../../../util/own-member.ts';
import type { Part } from '../host/host.ts';
import { type HostStepsParts, VERIFY_MS } from '../host/host-steps.ts';
import { PARTS, STEPS } from '../host/step-names.ts';

const REPORT = 'upgrade.refit.dev/kubeadm';

/** The schema of the report on a Node. Reports must be checked, because the kubelet of the node can also write them. */
const reportSchema = z.object({
  /** The uid of the rollout. */
  rollout: z.string(),
  /** The key of the target. */
  target: z.string(),
  /** The `since` of the target at the start of the attempt, in RFC 3339. */
  attempt: z.string(),
  state: z.enum(['working', 'finished', 'failed']),
  step: z.string().max(20),
  since: z.string(),
  from: z.string().optional(),
  /**
   * True after something on the host may have been replaced, either by this attempt or by an earlier attempt that was
   * killed.
   */
  touched: z.boolean().optional(),
  /**
   * True if an earlier attempt may have changed the kubelet of the host, and none has finished upgrading it since. It is
   * absent in reports of earlier releases, which do not know it.
   */
  touchedBefore: z.boolean().optional(),
  /** True if the attempt upgrades the kubelet. If it has finished, the whole host works. */
  upgradesKubelet: z.boolean().optional(),
  /** The duration of each finished step, in milliseconds. */
  spent: z.record(z.string(), z.number()).refine((spent) => Object.keys(spent).length <= 10),
  message: z.string().optional(),
});

export type Report = Readonly<z.infer<typeof reportSchema>>;

export function reportOn(node: KubeObject | undefined): Report | undefined {
  return reportSchema.safeParse(parseJson(node?.metadata.annotations?.[REPORT])).data;
}

/**
 * Returns true if the last attempt failed, and if neither it nor an earlier one has changed the host since an attempt finished
 * on it.
 */
export function isUnchanged({ state, touched, touchedBefore }: Report): boolean {
  return state === 'failed' && touched !== true && touchedBefore === false;
}

export function reportPatch(report: Report): object {
  return { metadata: { annotations: { [REPORT]: JSON.stringify(report) } } };
}

/** The stage whose host runs `kubeadm upgrade apply`. */
export const LEADER = 'leader';

/** The steps that have deadlines of their own. The other steps have only the deadline of the whole host. */
const TIMED: Readonly<Record<string, TimedStep>> = {
  [STEPS.stage]: 'download',
  [STEPS.drain]: 'drain',
};

export interface HostUpgrade extends Pick<HostStepsParts, 'rollout' | 'version' | 'parts'> {
  readonly target: Target;
  readonly verb: 'apply' | 'node';
}

export interface HostUpgrades {
  /**
   * Returns the state of the work that this process does on the host; undefined if this process does not work on the
   * host. `open` means that the work has changed nothing yet, so it can be stopped. The report on the Node is not used
   * for this, because the kubelet can write that report.
   */
  stateOf(target: Target): 'open' | 'busy' | 'ended' | undefined;
  isWaiting(target: Target): boolean;
  /** Starts the work. Resolves once it has started; does nothing if it already runs. */
  begin(work: HostUpgrade): Promise<void>;
  /** Informs the work that the node is drained. If the work waits for the drain, it continues. */
  acknowledge(target: Target): void;
  /** Ends the work if it has changed nothing yet. Resolves when the reason has been written to the Node. */
  stop(target: Target, reason: string): Promise<void>;
}

/** Returns the signal of the dialect. `upgrades` is undefined for commands that only read. */
export function sshSignal(upgrades: HostUpgrades | undefined): Signal {
  return {
    read: readerOf(upgrades),
    send(_world, { source }, { stage, target }) {
      const { id, version } = stage;
      const verb = id === LEADER ? 'apply' : 'node';
      const work = { rollout: source.uid, target, version, verb, parts: partsOf(stage) } as const;
      return upgrades && begun(async () => await upgrades.begin(work));
    },
    // Sending a signal writes no Kubernetes object, because the work starts on the host itself.
    touches: () => undefined,
    acknowledge: (_world, _rollout, _stage, target) =>
      upgrades && begun(() => upgrades.acknowledge(target)),
    cancel: (_world, _rollout, _stage, target, { message }) =>
      upgrades && begun(async () => await upgrades.stop(target, message)),
    finish(world, _rollout, stage, { name }) {
      const node = drains(stage) ? world.get(nodes, name) : undefined;
      const open = node && withoutCordon(node);
      return open === node || !open
        ? undefined
        : { kind: 'replace', resource: nodes, object: open };
    },
  };
}

/**
 * The leader drains a host before its kubelet is upgraded. A host that failed after it was changed stays cordoned, because it may
 * not be able to run pods.
 */
export const drainDelegation: DrainDelegation = {
  always: true,
  nodeOf(stage, target, world) {
    const node = world.get(nodes, target.name);
    const report = reportOn(node);
    const isChanged =
      target.state === 'failed' &&
      report?.target === target.key &&
      (report.touched === true || report.touchedBefore === true);
    return drains(stage) && !isChanged ? node : undefined;
  },
};

function partsOf({ procedure }: Stage): readonly Part[] {
  const part = (Object.keys(PARTS) as Part[]).find((each) => each === procedure);
  return part ? [part] : ['kubeadm', 'kubelet'];
}

/** Returns true if the stage needs a drain, because it upgrades kubelets. */
function drains(stage: Stage): boolean {
  return partsOf(stage).includes('kubelet');
}

function begun(begin: () => Promise<void> | void): Instruction {
  return { kind: 'begin', begin: async () => await begin() };
}

/**
 * Returns a function that reads the report of a target. If a report says `working` but this process does not work on the host, the
 * process that wrote the report was killed, so the work starts again.
 */
function readerOf(upgrades: HostUpgrades | undefined): Signal['read'] {
  return (world, { source }, stage, target) => {
    const node = world.get(nodes, target.name);
    const report = reportOn(node);
    const work = upgrades?.stateOf(target);
    if (!report || report.rollout !== source.uid || report.target !== target.key) {
      const times = { attempt: target.since, since: target.since };
      if (work === 'open') return { kind: 'sent', ...times };
      return work
        ? { kind: 'working', step: PARTS[partsOf(stage)[0] ?? 'kubeadm'], ...times }
        : { kind: 'none' };
    }
    const { attempt, since, step, from, spent, touched, message = '' } = report;
    const state = work === 'open' || work === 'busy' ? 'working' : report.state;
    const seen = { attempt, since, report: { from, spent } };
    const isThere = !drains(stage) || kubeletVersionOf(node) === stage.version;
    if (state === 'failed') return { kind: 'failed', message, isHalfDone: touched, ...seen };
    if (state === 'finished' && isThere) return { kind: 'succeeded', ...seen };
    if (state === 'working' && upgrades && !work)
      return { kind: 'none', ...(touched && { begun: true }) };
    const waitsFor =
      step === STEPS.drain && (upgrades?.isWaiting(target) ?? true) ? 'drain' : undefined;
    const cancellable = touched !== true && (work === undefined || work === 'open');
    const limitMs = step === STEPS.verify && state === 'working' ? VERIFY_MS : undefined;
    return {
      kind: 'working',
      step,
      ...seen,
      part: ownMember(TIMED, step),
      limitMs,
      stalled: step === STEPS.verify && message !== '' ? message : undefined,
      waitsFor,
      cancellable,
    };
  };
}
