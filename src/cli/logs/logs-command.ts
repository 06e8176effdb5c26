/**
 * Implements `refit logs NODE`, which shows what happened on a node: the steps that its agent or leader has reported, and the
 * last lines of each pod there that carries out a part of an upgrade.
 */
import { isPodOfUpgrade } from '../../drain/own-pods.ts';
import { type ContainerStatus, keyOf, type Pod, pods } from '../../kube/resources.ts';
import { isForbidden } from '../../kube/status-error.ts';
import { rfc3339 } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { messageOf, RefitError } from '../../util/errors.ts';
import { printable } from '../../util/printable.ts';
import type { ConnectionFlags } from '../options.ts';
import type { ShownPlan, ShownStatus, TargetJson } from '../status/json-form.ts';
import { stepsOf } from '../status/picture.ts';
import * as sentences from '../status/sentences.ts';
import {
  inSession,
  observeOnce,
  type Session,
  type SessionParts,
} from '../status/status-session.ts';
import { titleOf } from '../status/text.ts';
import { targetNamed } from '../why/named-targets.ts';

export interface LogsFlags extends ConnectionFlags {
  /** The number of lines of each container. */
  readonly tail?: number;
}

const TAIL = 20;
/** The most pods that are shown, the newest of them. */
const MOST_PODS = 5;
/** A line of a log is cut after this many characters. Any program can write such a line. */
const LONGEST_LINE = 1000;
const AGENT = 'refit-agent';

/** Prints the steps and the logs. Rejects with REFIT_CONTROL if there are none. */
export async function showLogs(
  named: string,
  flags: LogsFlags,
  parts: SessionParts,
): Promise<void> {
  await inSession(flags, parts, 'refit-logs', async (session) => {
    const now = parts.clock.now();
    const status = await observeOnce(session, now);
    const worked = targetsIn(status, named);
    const node = worked[0]?.target.name ?? named;
    const ofPods = await podLines(node, flags.tail ?? TAIL, session);
    const blocks = [
      ...worked.map(({ plan, target }) => stepLines(plan, target, now)),
      ...ofPods,
      agentLines(worked.map(({ target }) => target)),
    ].filter((lines) => lines.length > 0);
    if (blocks.length === 0)
      throw new RefitError(
        'REFIT_CONTROL',
        `no plan has ${named} among its targets, and no pod of an upgrade runs there`,
        { hint: 'see the names with `refit status -o wide`' },
      );
    parts.output.write(`${blocks.map((lines) => lines.join('\n')).join('\n\n')}\n`);
  });
}

interface Worked {
  readonly plan: ShownPlan;
  readonly target: TargetJson;
}

function targetsIn({ plans }: ShownStatus, named: string): Worked[] {
  return plans.flatMap((plan) =>
    plan.stages
      .flatMap(({ targets }) => targets.filter(targetNamed(plan, named)))
      .map((target) => ({ plan, target })),
  );
}

/** Returns the title of the plan, each step with its start and its length, and how the target stands. */
function stepLines(plan: ShownPlan, target: TargetJson, now: number): string[] {
  return [
    titleOf(plan),
    ...stepsOf(target, plan, now).map(
      ({ word, from, to }) => `  ${rfc3339(from)}  ${word}  ${formatDuration(to - from)}`,
    ),
    `  ${sentences.sentenceOf(sentences.rowOf(plan, target, undefined, now))}`,
  ];
}

/** Returns where the log of an agent of Refit is that runs as a service. The log of an agent that runs as a pod is shown anyway. */
function agentLines(targets: readonly TargetJson[]): string[] {
  const isOurs = targets.some(({ agent }) => agent?.ours === true);
  if (!isOurs) return [];
  return [`The log of an agent that is a service is on its host: journalctl -u ${AGENT}`];
}

/** Resolves with the lines about each pod, the newest last. A right that is missing is told in a line. */
async function podLines(node: string, tail: number, session: Session): Promise<string[][]> {
  const { client, abort } = session;
  const fieldSelector = `spec.nodeName=${node}`;
  const listed = await client.listAll(pods, { fieldSelector, abort }).catch((error: unknown) => {
    if (!isForbidden(error)) throw error;
    return messageOf(error);
  });
  if (typeof listed === 'string') return [[`The pods of the node are not shown: ${listed}`]];
  const shown = listed.items
    .filter((pod) => isPodOfUpgrade(pod) || isAgent(pod))
    .toSorted((one, other) => (createdOf(one) < createdOf(other) ? -1 : 1))
    .slice(-MOST_PODS);
  return await Promise.all(shown.map(async (pod) => await linesOf(pod, tail, session)));
}

function isAgent({ metadata: { labels = {} } }: Pod): boolean {
  return labels['app.kubernetes.io/component'] === AGENT;
}

function createdOf({ metadata }: Pod): string {
  return metadata.creationTimestamp ?? '';
}

async function linesOf(pod: Pod, tail: number, session: Session): Promise<string[]> {
  const { status = {} } = pod;
  const { phase = 'Unknown', initContainerStatuses = [], containerStatuses = [] } = status;
  const logs = await Promise.all(
    [...initContainerStatuses, ...containerStatuses].map(
      async (container) => await containerLines(pod, container, tail, session),
    ),
  );
  return [printable(`Pod ${keyOf(pod)}  ${phase}`), ...logs.flat()];
}

/** Resolves with the last lines of the container; with none if it has not begun. */
async function containerLines(
  { metadata: { name, namespace = '' } }: Pod,
  container: ContainerStatus,
  tail: number,
  { client, abort }: Session,
): Promise<string[]> {
  const { state = {} } = container;
  const title = `  container ${container.name}${stateText(state)}`;
  if (state.waiting !== undefined) return [printable(title)];
  const query = new URLSearchParams({ container: container.name, tailLines: String(tail) });
  const path = `/api/v1/namespaces/${namespace}/pods/${name}/log?${query.toString()}`;
  const { status, body } = await client.raw(path, { abort });
  const lines =
    status === 200 ? body.trimEnd().split('\n') : [`(its log cannot be read: ${why(status)})`];
  return [
    printable(title),
    ...lines
      .filter((line) => line !== '')
      .map((line) => `    ${printable(line.slice(0, LONGEST_LINE))}`),
  ];
}

function stateText({ waiting, terminated }: NonNullable<ContainerStatus['state']>): string {
  if (waiting !== undefined)
    return ` waits${waiting.reason === undefined ? '' : `: ${waiting.reason}`}`;
  return terminated === undefined ? '' : ` ended with ${terminated.exitCode ?? 0}`;
}

function why(status: number): string {
  if (status === 401 || status === 403) return 'you may not get pods/log';
  return `the API server answered ${status}`;
}
