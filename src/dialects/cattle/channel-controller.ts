/** Keeps a Plan's latest version as its channel says: requests the channel at once, then once per interval. */
import { type CattlePlan, cattlePlans } from '../../api/cattle/plan.ts';
import type { KubeClient } from '../../kube/client.ts';
import { keyOf, splitKey } from '../../kube/resources.ts';
import { isConflict } from '../../kube/status-error.ts';
import { createInformer } from '../../kube/watch/informer.ts';
import { type Controller, fromObject, generationChanged, type ReconcileResult } from '../../runtime/controller.ts';
import { messageOf } from '../../util/errors.ts';
import type { Tools } from '../../util/tools.ts';
import { type ConditionUpdate, says, withVerdicts } from './conditions.ts';
import { mungeVersion } from './latest.ts';

export interface ChannelParts extends Pick<Tools, 'clock' | 'log'> {
  readonly reader: KubeClient;
  readonly writer: KubeClient;
  readonly namespace: string;
  /** Milliseconds between two requests to a channel that answered. */
  readonly intervalMs: number;
  /** Rejects if the channel returns no version. */
  readonly ask: (channel: string, latestVersion: string) => Promise<string>;
}

/** When a channel answered last. Not persisted: a new process asks again. */
interface Answer {
  readonly channel: string;
  readonly at: number;
}

const TIMEOUT_MS = 120_000;
const MAX_ATTEMPTS = 10;

export function channelController(parts: ChannelParts): Controller {
  const { reader, namespace, log } = parts;
  const plans = createInformer(reader, cattlePlans, { namespace, log });
  const answers = new Map<string, Answer>();
  return {
    name: 'cattle-channel',
    sources: [fromObject(plans, generationChanged)],
    reconcile: async (key) => {
      const { name, namespace } = splitKey(key);
      const plan = plans.get(name, namespace);
      if (plan && plan.metadata.deletionTimestamp === undefined && plan.spec?.channel && !plan.spec.version) {
        return await follow(parts, plan, plan.spec.channel, answers);
      }
      answers.delete(key);
      return {};
    },
    concurrency: 2,
    timeoutMs: TIMEOUT_MS,
  };
}

async function follow(
  { intervalMs, clock, log, ask, writer }: ChannelParts,
  plan: CattlePlan,
  channel: string,
  answers: Map<string, Answer>,
): Promise<ReconcileResult> {
  const key = keyOf(plan);
  const known = answers.get(key);
  const age = clock.monotonic() - (known?.at ?? 0);
  if (known?.channel === channel && age < intervalMs) return { requeueAfterMs: intervalMs - age };
  try {
    const version = mungeVersion(await ask(channel, plan.status?.latestVersion ?? ''));
    log.info('channel resolved', { plan: key, version });
    await record(writer, plan, (current) => withVersion(current, version, clock.now()));
  } catch (error) {
    await record(writer, plan, (current) => withFailure(current, messageOf(error), clock.now()));
    throw error;
  }
  answers.set(key, { channel, at: clock.monotonic() });
  return { requeueAfterMs: intervalMs };
}

const RESOLVED: ConditionUpdate = { type: 'LatestResolved', status: 'True', reason: 'Channel', message: '' };

function withVersion(plan: CattlePlan, version: string, now: number): CattlePlan {
  if (says(plan, RESOLVED) && plan.status?.latestVersion === version) return plan;
  const conditions = withVerdicts(plan.status?.conditions ?? [], [RESOLVED], now);
  return { ...plan, status: { ...plan.status, conditions, latestVersion: version } };
}

/** A resolved version stays, so a rollout continues while its channel is unavailable. */
function withFailure(plan: CattlePlan, message: string, now: number): CattlePlan {
  const failure: ConditionUpdate = { type: 'LatestResolved', status: 'False', reason: 'Error', message };
  if (says(plan, RESOLVED) || says(plan, failure)) return plan;
  const conditions = withVerdicts(plan.status?.conditions ?? [], [failure], now);
  return { ...plan, status: { ...plan.status, conditions } };
}

/** The engine writes the same status: on a conflict, applies the change again to the current object. */
async function record(
  writer: KubeClient,
  { metadata: { name, namespace, uid } }: CattlePlan,
  change: (plan: CattlePlan) => CattlePlan,
): Promise<void> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const current = await writer.get(cattlePlans, name, { namespace });
    const changed = change(current);
    if (changed === current || current.metadata.uid !== uid) return;
    try {
      await writer.replace(cattlePlans, changed, { subresource: 'status' });
      return;
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
  throw new Error(`could not write the status of Plan ${name}: ${MAX_ATTEMPTS} conflicts in a row`);
}
