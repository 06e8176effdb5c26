/**
 * Owns the annotation signal seen from the engine, for every dialect whose nodes run our agent: what an object's
 * annotations say about one target of one rollout.
 */
import type { Signal, World } from '../engine/dialect.ts';
import type { Signalling } from '../engine/model/decided.ts';
import type { ForeignWork, Observation } from '../engine/model/observed.ts';
import type { Rollout, Stage } from '../engine/model/recorded.ts';
import type { TimedStep } from '../engine/policy/rollout-policy.ts';
import type { Resource } from '../kube/resources.ts';
import type { KubeObject } from '../kube/types.ts';
import { type AgentPolicy, agentPolicyFor, encodeAgentPolicy } from '../signal/agent-policy.ts';
import { decodeSignal, encodeSignal, type SignalCommand, type SignalData } from '../signal/codec.ts';
import { AGENT_POLICY_ANNOTATION, REPORT_ANNOTATION, ROLLOUT_ANNOTATION } from '../signal/names.ts';
import { decodeReport, encodeReport } from '../signal/report.ts';
import { rfc3339 } from '../util/clock.ts';
import { onceForEach } from '../util/memo.ts';

export interface Carriers {
  /** The objects that stand for the targets of a stage and carry their signals. */
  readonly resourceOf: (stage: Pick<Stage, 'role' | 'procedure'>) => Resource;
  /** Every kind of object that may carry a signal of this dialect. */
  readonly all: readonly (readonly [Resource, ForeignWork['role']])[];
  /** What agents are told beside what the policy says. */
  readonly agent?: AgentPolicy;
}

export function annotationSignal({ resourceOf, agent }: Carriers): Signal {
  const objectOf = (world: World, stage: Stage, name: string): KubeObject | undefined =>
    world.get(resourceOf(stage), name);
  const told = (world: World, stage: Stage, name: string, status: string, now: number, reason?: string) => {
    const object = objectOf(world, stage, name);
    const changed = object && withStatus(object, status, now, reason);
    return changed && ({ kind: 'replace', resource: resourceOf(stage), object: changed } as const);
  };
  return {
    read(world, rollout, stage, target) {
      const object = objectOf(world, stage, target.name);
      const signal = decodeSignal(object?.metadata.annotations);
      if (!object || !signal || !isFor(signal, stage) || !belongs(object, signal, rollout)) return { kind: 'none' };
      return observe(object.metadata);
    },

    send(world, rollout, signalling) {
      const object = objectOf(world, signalling.stage, signalling.target.name);
      const resource = resourceOf(signalling.stage);
      const asked = { ...signalling, agent: { ...signalling.agent, ...agent } };
      return object && { kind: 'replace', resource, object: withSignal(object, rollout, asked) };
    },

    acknowledge(world, _rollout, stage, { name }, now) {
      const status = decodeSignal(objectOf(world, stage, name)?.metadata.annotations)?.status?.status ?? '';
      const next = NEXT[status];
      return next === undefined ? undefined : told(world, stage, name, next, now);
    },

    cancel: (world, _rollout, stage, { name }, { message }, now) => told(world, stage, name, 'Failed', now, message),
  };
}

/** The words of a node that waits for its leader, and what the leader then writes. */
const NEXT: Readonly<Record<string, string>> = { Cordoning: 'ApplyingUpdate', UnCordoning: 'Completed' };

/** The object with the signal on it; everything else on it stays as it was. */
export function withSignal(
  object: KubeObject,
  rollout: Rollout,
  { stage, target, payload, agent }: Signalling,
): KubeObject {
  const {
    [REPORT_ANNOTATION]: _answered,
    [AGENT_POLICY_ANNOTATION]: _policy,
    ...annotations
  } = object.metadata.annotations ?? {};
  const command = {
    id: stage.command,
    kind: kindOf(stage),
    url: '',
    ...payload,
    version: stage.version,
    forceupdate: stage.forced,
  } as const;
  const signal = encodeSignal({ planId: rollout.id, created: target.since, command });
  const ours = { [ROLLOUT_ANNOTATION]: `${rollout.source.uid}/${target.since}`, ...encodeAgentPolicy(agent) };
  return { ...object, metadata: { ...object.metadata, annotations: { ...annotations, ...signal, ...ours } } };
}

/** The object with another status in its signal; undefined where it carries none. */
function withStatus(object: KubeObject, status: string, now: number, reason?: string): KubeObject | undefined {
  const { annotations } = object.metadata;
  const signal = decodeSignal(annotations);
  if (!signal) return undefined;
  const { created } = signal;
  const timestamp = rfc3339(now);
  const report = reason === undefined ? {} : encodeReport({ ...decodeReport(annotations, created), created, reason });
  const written = { ...annotations, ...encodeSignal({ ...signal, status: { status, timestamp } }), ...report };
  return { ...object, metadata: { ...object.metadata, annotations: written } };
}

function kindOf({ procedure }: Stage): SignalCommand['kind'] {
  return procedure === 'airgapupdate' ? procedure : 'k0supdate';
}

function isFor({ command }: SignalData, stage: Stage): boolean {
  return command.kind === kindOf(stage) && command.id === stage.command;
}

/**
 * Our signals carry a fence that names the rollout for good, so that neither a reused nor an edited plan id can mislead.
 * It counts whatever the target's `since` is: an intent may have been recorded anew while its signal was on its way, or by
 * a leader that saw an old object, and a node that works must not be started over for that.
 * A signal without one of its own comes from an original leader: it counts by plan id where it is not older than the plan.
 */
export function belongs(
  { metadata }: KubeObject,
  { created, planId }: Pick<SignalData, 'created' | 'planId'>,
  { source, id }: Pick<Rollout, 'id'> & { readonly source: Pick<Rollout['source'], 'uid' | 'created'> },
): boolean {
  const signalOrigin = metadata.annotations?.[ROLLOUT_ANNOTATION];
  if (signalOrigin === `${source.uid}/${created}`) return true;
  if (signalOrigin?.endsWith(`/${created}`)) return false;
  return planId === id && Date.parse(created) >= Date.parse(source.created);
}

const ENDED = new Set(['Completed', 'Failed', 'FailedDownload']);

export function isOver({ status }: Pick<SignalData, 'status'>): boolean {
  return ENDED.has(status?.status ?? '');
}

/** Nodes whose signal has not ended and is not of this rollout: whatever told them to move may be gone, but they move. */
export function foreignTargetsAmong({ all }: Carriers): (world: World, rollout: Rollout) => ForeignWork[] {
  return (world, rollout) =>
    all.flatMap(([resource, role]) =>
      world.list(resource).flatMap((object) => {
        const signal = decodeSignal(object.metadata.annotations);
        if (!signal || isOver(signal) || belongs(object, signal, rollout)) return [];
        return [{ name: object.metadata.name, role, since: signal.status?.timestamp ?? signal.created }];
      }),
    );
}

/** What stands on an object, once for each of its versions. */
const observe = onceForEach((metadata: KubeObject['metadata']): Observation => {
  const signal = decodeSignal(metadata.annotations);
  if (!signal) return { kind: 'none' };
  const { created, status } = signal;
  if (!status) return { kind: 'sent', attempt: created, since: created };
  const report = decodeReport(metadata.annotations, created);
  const seen = { attempt: created, since: status.timestamp, report };
  switch (status.status) {
    case 'Completed':
      return { kind: 'succeeded', ...seen };
    case 'Failed':
    case 'FailedDownload': {
      const why = report?.reason ?? "the reason stands in the node's log";
      const late = report?.late === undefined ? {} : { late: report.late };
      return { kind: 'failed', ...seen, message: `${status.status}: ${why}`, ...late };
    }
    default:
      return {
        kind: 'working',
        step: status.status,
        ...seen,
        ...STEPS[status.status],
        ...cordonOf(metadata, created, status.status),
      };
  }
});

/**
 * Original leaders and agents cordon without a mark. Under the signal of an original leader every cordon goes, as with the
 * original; under ours only what an agent without report, which is not ours, found the node without.
 */
function cordonOf({ annotations }: KubeObject['metadata'], created: string, status: string): { ownsCordon?: true } {
  if (status !== 'UnCordoning') return {};
  const isOurs = annotations?.[ROLLOUT_ANNOTATION]?.endsWith(`/${created}`) === true;
  const isOurAgent = decodeReport(annotations, created) !== undefined;
  const isFound = agentPolicyFor(annotations, created).foundCordoned === true;
  return !isOurs || (!isOurAgent && !isFound) ? { ownsCordon: true } : {};
}

const STEPS: Readonly<
  Record<string, { part: TimedStep; waitsFor?: 'drain' | 'uncordon'; cancellable?: boolean } | undefined>
> = {
  Downloading: { part: 'download', cancellable: true },
  Cordoning: { part: 'drain', waitsFor: 'drain', cancellable: true },
  ApplyingUpdate: { part: 'apply' },
  Restart: { part: 'restart' },
  UnCordoning: { part: 'ready', waitsFor: 'uncordon' },
};
