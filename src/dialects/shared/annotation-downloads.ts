/** Asks agents to download a version in advance, or to check whether they could download it, and reads their answers. */
import type { DownloadRequests } from '../../engine/contract/signal.ts';
import {
  hasStarted,
  isFinal,
  type Rollout,
  type Stage,
  type Target,
} from '../../engine/model/rollout.ts';
import { platformOf } from '../../engine/snapshot/gather.ts';
import { annotated, type KubeObject, withoutAnnotations } from '../../kube/resources.ts';
import { agentOf, downloadAnswerOn } from '../../signal/agent-presence.ts';
import type { SignalCommand } from '../../signal/annotations.ts';
import { DOWNLOAD_CHECK_ANNOTATION, PREFETCH_ANNOTATION } from '../../signal/names.ts';
import * as prefetching from '../../signal/prefetch.ts';
import { sameJson } from '../../util/json.ts';
import { onceForEach } from '../../util/memo.ts';
import { ownMember } from '../../util/own-member.ts';
import { type ResourceOf, signalObjects } from './signal-objects.ts';
import { commandOf, kindOf } from './stage-command.ts';

/** Returns the part of a signal that lets nodes download before the rollout reaches them. */
export function annotationDownloads(resourceOf: ResourceOf): DownloadRequests {
  const { objectOf, replacing } = signalObjects(resourceOf);
  return {
    prefetchOf(world, rollout, stage, target) {
      const object = objectOf(world, stage, target);
      const asked = prefetching.decodePrefetch(object?.metadata.annotations);
      const isOurs = asked?.rollout === rollout.source.uid;
      const wanted = object && prefetchFor(object, rollout, stage);
      const check = prefetching.decodeDownloadCheck(object?.metadata.annotations);
      if (check?.rollout === rollout.source.uid && isFinal(rollout)) return 'outdated';
      if (wanted === undefined) return isOurs ? 'outdated' : undefined;
      if (!isOurs) return 'possible';
      return sameJson(asked.command, wanted.command) ? 'asked' : 'outdated';
    },

    prefetch(world, rollout, stage, target, policy) {
      const object = objectOf(world, stage, target);
      const wanted = object && prefetchFor(object, rollout, stage);
      return replacing(
        stage,
        wanted && annotated(object, prefetching.encodePrefetch({ ...wanted, policy })),
      );
    },

    end(world, stage, target) {
      const object = objectOf(world, stage, target);
      return replacing(
        stage,
        object && withoutAnnotations(object, PREFETCH_ANNOTATION, DOWNLOAD_CHECK_ANNOTATION),
      );
    },

    checkOf: (world, rollout, stage, target) =>
      downloadsOn(objectOf(world, stage, target), rollout, stage, target),

    check(world, rollout, stage, target, policy) {
      const object = objectOf(world, stage, target);
      const commands = object && downloadsFor(object, rollout, stage, target);
      const check =
        commands &&
        prefetching.encodeDownloadCheck({ rollout: rollout.source.uid, commands, policy });
      return replacing(stage, check && annotated(object, check));
    },
  };
}

/**
 * Returns the request to download the payload in advance; undefined if that is not possible. Only Refit's agent can
 * download in advance, and only a payload with a sha256 can be verified.
 */
function prefetchFor(object: KubeObject, { source }: Rollout, stage: Stage) {
  const payload = ownMember(stage.payloads, platformOf(object) ?? '');
  if (payload?.sha256 === undefined || kindOf(stage) !== 'k0supdate' || !agentOf(object).ours)
    return undefined;
  return { rollout: source.uid, command: commandOf(stage, payload) };
}

/**
 * Returns the answer of the agent to the check of downloads. Returns undefined after the rollout has started, and if the agent does not
 * answer such checks.
 */
function downloadsOn(
  object: KubeObject | undefined,
  rollout: Rollout,
  stage: Stage,
  target: Target,
) {
  if (hasStarted(rollout)) return undefined;
  const answer = object && downloadAnswerOn(object);
  const { annotations = {} } = object?.metadata ?? {};
  const commands = object && downloadsFor(object, rollout, stage, target);
  if (!answer || !commands?.length) return undefined;
  const asked = prefetching.decodeDownloadCheck(annotations);
  const { room, bytes, problem } = answer;
  if (asked?.rollout !== rollout.source.uid || !sameJson(asked.commands, commands))
    return { answer: 'unasked', room } as const;
  const { policy } = asked;
  if (answer.id !== prefetching.downloadCheckId(annotations))
    return { answer: 'asked', policy, room } as const;
  return {
    answer: problem === undefined ? 'possible' : 'impossible',
    policy,
    problem,
    bytes,
    room,
  } as const;
}

/** Returns the commands of all stages for the target, up to the limit of a check. One check covers all commands of a node. */
function downloadsFor(
  object: KubeObject,
  { stages }: Rollout,
  { role }: Stage,
  { name }: Target,
): SignalCommand[] {
  const commands = stages.flatMap((stage) => {
    const payload = ownMember(stage.payloads, platformOf(object) ?? '');
    return payload && stage.role === role && namesIn(stage).has(name)
      ? [commandOf(stage, payload)]
      : [];
  });
  return commands.slice(0, prefetching.MOST_COMMANDS);
}

const namesIn = onceForEach(({ targets }: Stage) => new Set(targets.map(({ name }) => name)));
