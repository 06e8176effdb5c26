/** Keeps the latest version of each Plan up to date: requests its channel at once, and then once per interval. */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import type { KubeClient } from '../../../kube/client.ts';
import type { EventRecorder } from '../../../kube/event-recorder.ts';
import { keyOf, type Node, splitKey } from '../../../kube/resources.ts';
import { isConflict } from '../../../kube/status-error.ts';
import type { Informer } from '../../../kube/watch/informer.ts';
import type { ConditionUpdate } from '../../../runtime/conditions.ts';
import { type Controller, fromObject, generationChanged } from '../../../runtime/run-controller.ts';
import { rfc3339 } from '../../../util/clock.ts';
import { messageOf, unlessError } from '../../../util/errors.ts';
import type { BasicTools } from '../../../util/tools.ts';
import {
  CHANNEL_TYPE,
  conditionOf,
  RESOLVED_TYPE,
  says,
  withoutCondition,
  withVerdict,
} from './conditions.ts';
import { channelFaults } from './field-problems.ts';
import { installsKubernetes } from './installed-version.ts';
import { mungeVersion } from './names.ts';
import { refusedAnswer, type VersionConfig } from './version-rules.ts';

export interface ChannelParts extends BasicTools {
  readonly plans: Informer<CattlePlan>;
  readonly writer: KubeClient;
  readonly events: Pick<EventRecorder, 'record'>;
  /** Milliseconds between two requests to a channel that answered. */
  readonly intervalMs: number;
  /** Rejects if the channel returns no version. */
  readonly ask: (channel: string, latestVersion: string) => Promise<string>;
  /** Resolves with all Nodes. An answer that is older than the kubelet of a Node of the Plan is not accepted. */
  readonly listNodes: () => Promise<readonly Node[]>;
  readonly versions: VersionConfig;
}

/** The last answer of a channel. It is not persisted, so a new process requests the channel again. */
interface Answer {
  /** The uid of the Plan and its channel, as one key. */
  readonly asked: string;
  readonly at: number;
}

const MAX_ATTEMPTS = 10;

export function channelController(parts: ChannelParts): Controller {
  const { plans } = parts;
  const answers = new Map<string, Answer>();
  return {
    name: 'cattle-channel',
    sources: [fromObject(plans, generationChanged)],
    reconcile: async (key) => {
      const { name, namespace } = splitKey(key);
      const plan = plans.get(name, namespace);
      if (
        plan &&
        plan.metadata.deletionTimestamp === undefined &&
        plan.spec?.channel &&
        !plan.spec.version
      )
        return await follow(parts, plan, plan.spec.channel, answers);
      answers.delete(key);
      if (plan && conditionOf(plan, CHANNEL_TYPE))
        await record(parts.writer, plan, (it) => withoutCondition(it, CHANNEL_TYPE));
      return {};
    },
    concurrency: 2,
    timeoutMs: 120_000,
  };
}

async function follow(
  parts: ChannelParts,
  plan: CattlePlan,
  channel: string,
  answers: Map<string, Answer>,
) {
  const { intervalMs, clock, log, ask, writer, events } = parts;
  const key = keyOf(plan);
  const known = answers.get(key);
  const age = clock.monotonic() - (known?.at ?? 0);
  const asked = `${plan.metadata.uid} ${channel}`;
  if (known?.asked === asked && age < intervalMs) return { requeueAfterMs: intervalMs - age };
  try {
    const version = mungeVersion(await ask(channel, plan.status?.latestVersion ?? ''));
    const all = await nodesFor(parts, plan);
    const refusalOf = (current: CattlePlan) => refusedAnswer(current, version, all, parts.versions);
    const isNew = await record(writer, plan, (current) => {
      const refusal = refusalOf(current);
      return refusal === undefined
        ? withVersion(current, version, clock.now())
        : withOlderAnswer(current, refusal, clock.now());
    });
    const refusal = refusalOf(plan);
    log.info(refusal === undefined ? 'channel resolved' : 'channel gives an older version', {
      plan: key,
      version,
    });
    if (refusal !== undefined) {
      if (isNew) events.record(plan, { type: 'Warning', reason: 'OlderVersion', message: refusal });
      answers.set(key, { asked, at: clock.monotonic() });
      return { requeueAfterMs: intervalMs };
    }
    const message = `the channel says version ${version}`;
    if (isNew && plan.status?.latestVersion !== version)
      events.record(plan, { type: 'Normal', reason: 'Resolved', message });
  } catch (error) {
    // The error of a request says less about an address that is none than the sentence about the field.
    const message = channelFaults(channel)[0] ?? messageOf(error);
    const isNew = await record(writer, plan, (current) =>
      withFailure(current, message, clock.now()),
    );
    if (isNew) events.record(plan, { type: 'Warning', reason: 'ResolveFailed', message });
    throw error;
  }
  answers.set(key, { asked, at: clock.monotonic() });
  return { requeueAfterMs: intervalMs };
}

/** Resolves with the Nodes against which an answer is checked; empty if no answer for the Plan is checked. */
async function nodesFor(
  { listNodes, versions: { checksVersions = true, installers } }: ChannelParts,
  plan: CattlePlan,
): Promise<readonly Node[]> {
  return checksVersions && installsKubernetes(plan, installers) ? await listNodes() : [];
}

const RESOLVED: ConditionUpdate = {
  type: RESOLVED_TYPE,
  status: 'True',
  reason: 'Channel',
  message: '',
};

function withVersion(plan: CattlePlan, version: string, now: number): CattlePlan {
  const resolved = withVerdict(withoutCondition(plan, CHANNEL_TYPE), RESOLVED, now);
  const { status } = resolved;
  return status?.latestVersion === version
    ? resolved
    : { ...resolved, status: { ...status, latestVersion: version } };
}

/** Returns the plan with a condition that says why the answer of its channel is not accepted. The plan keeps its version. */
function withOlderAnswer(plan: CattlePlan, message: string, now: number): CattlePlan {
  const refusal: ConditionUpdate = says(plan, RESOLVED)
    ? { type: CHANNEL_TYPE, status: 'True', reason: 'OlderVersion', message }
    : { type: RESOLVED_TYPE, status: 'False', reason: 'OlderVersion', message };
  return withVerdict(plan, refusal, now);
}

/**
 * Returns the plan with the failure of its channel. If the channel returned a version before, the plan keeps that
 * version and its rollout continues. A condition that only Refit uses then reports the failure.
 */
function withFailure(plan: CattlePlan, message: string, now: number): CattlePlan {
  const [, since = rfc3339(now)] =
    / since (\S+): /.exec(conditionOf(plan, CHANNEL_TYPE)?.message ?? '') ?? [];
  const failing = `the channel has returned no version since ${since}: ${message}`;
  const failure: ConditionUpdate = says(plan, RESOLVED)
    ? { type: CHANNEL_TYPE, status: 'True', reason: 'ResolveFailed', message: failing }
    : { type: RESOLVED_TYPE, status: 'False', reason: 'Error', message };
  return withVerdict(plan, failure, now);
}

/**
 * Writes a change of the status. Repeats the write after a conflict, because the engine writes the same status. Resolves with
 * false if nothing changed, or if the Plan has another channel now.
 */
async function record(
  writer: KubeClient,
  { metadata, spec }: CattlePlan,
  change: (plan: CattlePlan) => CattlePlan,
) {
  const { name, namespace, uid } = metadata;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const current = await writer.get(cattlePlans, name, { namespace });
    const changed = change(current);
    if (
      changed === current ||
      current.metadata.uid !== uid ||
      current.spec?.channel !== spec?.channel
    )
      return false;
    if (
      await unlessError(isConflict)(writer.replace(cattlePlans, changed, { subresource: 'status' }))
    )
      return true;
  }
  throw new Error(`could not write the status of Plan ${name}: ${MAX_ATTEMPTS} conflicts in a row`);
}
