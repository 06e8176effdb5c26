/** The pass that picks one target at random and signals it. The status of the plan shows the signal only after that. */
import type { TargetStatus } from '../../../../src/api/autopilot/plan.ts';
import { type KubeObject, type Node, nodes } from '../../../../src/kube/resources.ts';
import { isConflict, isNotFound } from '../../../../src/kube/status-error.ts';
import { decodeSignal, encodeSignal, type SignalData } from '../../../../src/signal/annotations.ts';
import { type ControlNode, controlNodes } from '../../../../src/signal/names.ts';
import { rfc3339 } from '../../../../src/util/clock.ts';
import { withSignal } from '../agent/phase.ts';
import { type CommandView, type Group, platformOf } from './command-view.ts';
import type { LeaderParts, Pass } from './parts.ts';

export const schedulable: Pass = async (parts, view, plan) => {
  const group = view.groups.find(({ entries }) => pendingIn(entries).length > 0);
  // The pass counts only targets that wait for a signal, as the original does. So the command becomes Completed even if
  // a signalled target has not finished.
  if (group === undefined) return 'Completed';
  const name = parts.pick(pendingIn(group.entries));
  const entry = group.entries.find((each) => each.name === name);
  const object = parts.cache.get(group.resource, name);
  if (entry === undefined || object === undefined) return parts.quirks.whenGone;
  if (view.kind === 'k0supdate') {
    const readiness = await look(parts, group, object);
    if (readiness === 'gone') return parts.quirks.whenGone;
    if (readiness === 'unready') return parts.quirks.whenNotReady ?? 'again';
  }
  const platform = platformOf(object);
  const payload = platform === undefined ? undefined : view.platforms[platform];
  if (payload === undefined) {
    entry.state = 'SignalMissingPlatform';
    return 'IncompleteTargets';
  }
  const signal = signalFor(view, plan.spec.id ?? '', payload, rfc3339(parts.clock.now()));
  if (decodeSignal(encodeSignal(signal)) === undefined) return 'IncompleteTargets';
  try {
    await parts.client.replace(group.resource, withSignal(object, signal));
  } catch (error) {
    if (isConflict(error)) return 'again';
    throw error;
  }
  entry.state = 'SignalSent';
  entry.lastUpdatedTimestamp = rfc3339(parts.clock.now());
  return 'SchedulableWait';
};

function pendingIn(entries: readonly TargetStatus[]): string[] {
  return entries.filter(({ state }) => state === 'SignalPending').map(({ name }) => name);
}

function signalFor(
  { kind, version, forceupdate, status }: CommandView,
  planId: string,
  { url, sha256 }: CommandView['platforms'][string],
  created: string,
): SignalData {
  const command = {
    id: status.id,
    kind,
    url,
    version,
    ...(sha256 ? { sha256 } : {}),
    ...(forceupdate ? { forceupdate } : {}),
  };
  return { planId, created, command };
}

type Readiness = 'ready' | 'unready' | 'gone';

/**
 * Checks whether the target may be signalled. For a worker, it reads the Ready condition of that worker. For a
 * controller, it asks the API servers of all controllers in the command, and no others.
 */
async function look(
  parts: LeaderParts,
  { resource, entries }: Group,
  object: KubeObject,
): Promise<Readiness> {
  if (resource.kind === nodes.kind) {
    const { conditions = [] } = (object as Node).status ?? {};
    return conditions.some(({ type, status }) => type === 'Ready' && status === 'True')
      ? 'ready'
      : 'unready';
  }
  const found = await Promise.all(entries.map(async ({ name }) => await probe(parts, name)));
  return (
    found.find((each) => each === 'gone') ?? found.find((each) => each === 'unready') ?? 'ready'
  );
}

async function probe({ client, askReadyz, log }: LeaderParts, name: string): Promise<Readiness> {
  try {
    const { status }: ControlNode = await client.get(controlNodes, name);
    const address = status?.addresses?.find(({ type }) => type === 'InternalIP')?.address;
    if (address === undefined) return 'unready';
    const code = await askReadyz(address);
    return code >= 200 && code < 300 ? 'ready' : 'unready';
  } catch (error) {
    if (isNotFound(error)) return 'gone';
    log.info('a controller is not ready', { name });
    return 'unready';
  }
}
