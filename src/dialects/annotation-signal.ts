/**
 * Owns the annotation signal seen from the engine, for every dialect whose nodes run our agent: what an object's
 * annotations say about one target of one campaign.
 */
import type { Signal, World } from '../engine/dialect.ts';
import type { Campaign, Observation, Other, Role, Signalling, Stage } from '../engine/model.ts';
import type { Resource } from '../kube/resources.ts';
import type { KubeObject } from '../kube/types.ts';
import { decodeSignal, encodeSignal, type SignalData } from '../signal/codec.ts';
import { FENCE_ANNOTATION, REPORT_ANNOTATION } from '../signal/names.ts';
import { decodeReport } from '../signal/report.ts';

/** The objects that stand for targets and carry their signals. */
export type SignalObjects = Readonly<Record<Role, Resource>>;

export function annotationSignal(objects: SignalObjects): Signal {
  return {
    read(world, campaign, stage, target) {
      const object = world.get(objects[stage.role], target.name);
      const signal = decodeSignal(object?.metadata.annotations);
      if (!object || !signal || !isFor(signal, stage) || !belongs(object, signal, campaign)) return { kind: 'none' };
      return observe(object, signal);
    },

    send(world, campaign, signalling) {
      const resource = objects[signalling.stage.role];
      const object = world.get(resource, signalling.target.name);
      return object && { kind: 'replace', resource, object: withSignal(object, campaign, signalling) };
    },
  };
}

/** The object with the signal on it; everything else on it stays as it was. */
export function withSignal(object: KubeObject, campaign: Campaign, { stage, target, payload }: Signalling): KubeObject {
  const { [REPORT_ANNOTATION]: _answered, ...annotations } = object.metadata.annotations ?? {};
  const command = {
    id: stage.command,
    kind: 'k0supdate',
    url: '',
    ...payload,
    version: stage.version,
    forceupdate: stage.forced,
  } as const;
  const signal = encodeSignal({ planId: campaign.id, created: target.since, command });
  const fence = { [FENCE_ANNOTATION]: `${campaign.source.uid}/${target.since}` };
  return { ...object, metadata: { ...object.metadata, annotations: { ...annotations, ...signal, ...fence } } };
}

function isFor({ command }: SignalData, stage: Stage): boolean {
  return command.kind === 'k0supdate' && command.id === stage.command;
}

/**
 * Our signals carry a fence that names the campaign for good, so that neither a reused nor an edited plan id can mislead.
 * It counts whatever the target's `since` is: an intent may have been recorded anew while its signal was on its way, or by
 * a leader that saw an old object, and a node that works must not be started over for that.
 * A signal without one of its own comes from an original leader: it counts by plan id where it is not older than the plan.
 */
function belongs({ metadata }: KubeObject, { created, planId }: SignalData, { source, id }: Campaign): boolean {
  const fence = metadata.annotations?.[FENCE_ANNOTATION];
  if (fence === `${source.uid}/${created}`) return true;
  if (fence?.endsWith(`/${created}`)) return false;
  return planId === id && Date.parse(created) >= Date.parse(source.created);
}

const ENDED = new Set(['Completed', 'Failed', 'FailedDownload']);

/** Nodes whose signal has not ended and is not of this campaign: whatever told them to move may be gone, but they move. */
export function strangersAmong(objects: SignalObjects): (world: World, campaign: Campaign) => Other[] {
  return (world, campaign) =>
    (['controller', 'worker'] as const).flatMap((role) =>
      world.list(objects[role]).flatMap((object) => {
        const signal = decodeSignal(object.metadata.annotations);
        if (!signal || ENDED.has(signal.status?.status ?? '') || belongs(object, signal, campaign)) return [];
        return [{ name: object.metadata.name, role, since: signal.status?.timestamp ?? signal.created }];
      }),
    );
}

function observe({ metadata }: KubeObject, { created, status }: SignalData): Observation {
  if (!status) return { kind: 'sent', attempt: created, since: created };
  const report = decodeReport(metadata.annotations, created);
  const seen = { attempt: created, since: status.timestamp, report };
  switch (status.status) {
    case 'Completed':
      return { kind: 'succeeded', ...seen };
    case 'Failed':
    case 'FailedDownload': {
      const why = report?.reason ?? "the reason stands in the node's log";
      return { kind: 'failed', ...seen, message: `${status.status}: ${why}` };
    }
    default:
      return { kind: 'working', step: status.status, ...seen };
  }
}
