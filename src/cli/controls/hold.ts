/** Implements `refit hold` and `refit unhold`: keeps plans of every dialect from starting on one node. */
import type { KubeClient } from '../../kube/client.ts';
import { type KubeObject, type Node, nodes, type Resource } from '../../kube/resources.ts';
import { ifFound } from '../../kube/status-error.ts';
import { listNodes } from '../../kube/trimmed.ts';
import {
  HOLD_ANNOTATION,
  type Hold,
  holdOn,
  isHeld,
  longestHold,
  writeHold,
} from '../../signal/holds.ts';
import { controlNodes } from '../../signal/names.ts';
import { rfc3339 } from '../../util/clock.ts';
import { RefitError } from '../../util/errors.ts';
import { printable } from '../../util/printable.ts';
import { askLeader } from '../status/load.ts';
import { isShownAs } from '../status/plan-names.ts';
import {
  connect,
  inSession,
  leaseOf,
  plansIn,
  type SessionParts,
} from '../status/status-session.ts';
import { otherLeaderLines } from '../status/text.ts';
import { askUserName } from '../user-name.ts';
import type { ControlFlags } from './control-command.ts';
import { dryRunLines } from './dry-run.ts';
import { namesOf } from './machine-names.ts';

export interface HoldFlags extends ControlFlags {
  readonly reason?: string;
  /** The RFC 3339 time at which the hold ends. */
  readonly until?: string;
  /** The length of the hold in milliseconds. */
  readonly for?: number;
}

interface Holdable {
  readonly resource: Resource;
  readonly object: KubeObject;
}

/**
 * Holds a node. If the new hold replaces an earlier hold, prints the earlier hold. Rejects with REFIT_CONTROL if the
 * node does not exist.
 */
export async function hold(named: string, flags: HoldFlags, parts: SessionParts): Promise<void> {
  const { abort, clock, output } = parts;
  const now = clock.now();
  const until = endOf(flags, now);
  using client = await connect(flags, 'refit-control');
  const found = await findHoldables(client, named, abort);
  if (found.length === 0) throw await noHoldable(named, 'hold', flags, parts);
  const by = await askUserName({ client, abort });
  const reason = flags.reason?.trim() || undefined;
  const since = rfc3339(now);
  const value = {
    by,
    since,
    ...(reason === undefined ? {} : { reason }),
    ...(until === undefined ? {} : { until }),
  };
  // All objects of the node are annotated. A controller that also runs pods has a Node and a ControlNode, and a plan
  // may read only one of these two objects.
  for (const each of found) await annotate(client, each, writeHold(value), flags, abort);
  const before = longestHold(found.map(({ object }) => holdOn(object)));
  const replaced =
    before !== undefined && isHeld(before, now)
      ? [`This replaces the hold ${holdText(named, before)}.`]
      : [];
  const notes = await otherLeader(client, parts, now);
  const effects = await effectsOf(found, client, parts);
  const said = [heldLine(named, value), ...effects, ...replaced];
  write(output, [...notes, ...said, ...dryRunLines(flags)]);
}

/** Resolves with what the hold means for objects of which these Nodes are a part. */
async function effectsOf(
  found: readonly Holdable[],
  client: KubeClient,
  { modules, abort }: SessionParts,
): Promise<string[]> {
  const held = found.flatMap(({ resource, object }) => (resource === nodes ? object : []));
  const said = modules.map(
    async ({ objects }) => (await (await objects?.())?.held(held, client, abort)) ?? [],
  );
  return (await Promise.all(said)).flat();
}

/** Ends a hold. Resolves even if nobody holds the node. Rejects with REFIT_CONTROL if the node does not exist. */
export async function unhold(
  named: string,
  flags: ControlFlags,
  parts: SessionParts,
): Promise<void> {
  const { abort, clock, output } = parts;
  const now = clock.now();
  using client = await connect(flags, 'refit-control');
  const found = await findHoldables(client, named, abort);
  if (found.length === 0) throw await noHoldable(named, 'unhold', flags, parts);
  const held = found.filter(({ object }) => hasHold(object));
  for (const each of held) await annotate(client, each, null, flags, abort);
  const wasHeld = held.some(({ object }) => {
    const before = holdOn(object);
    return before !== undefined && isHeld(before, now);
  });
  const said = wasHeld
    ? `${named} is not held any more: plans may start on it.`
    : `${named} was not held.`;
  const notes = await otherLeader(client, parts, now);
  write(output, [...notes, said, ...dryRunLines(flags)]);
}

/** Resolves with what the user must know about a leader that ignores holds. */
async function otherLeader(
  client: KubeClient,
  { abort, modules }: SessionParts,
  now: number,
): Promise<string[]> {
  const leader = await askLeader({ client, abort, lease: leaseOf(modules) }, now);
  return otherLeaderLines(leader, now);
}

function hasHold({ metadata: { annotations = {} } }: KubeObject): boolean {
  return Object.hasOwn(annotations, HOLD_ANNOTATION);
}

function heldLine(named: string, hold: Hold): string {
  return `${named} is held ${holdText(named, hold)}. No plan starts on it; work in progress finishes.`;
}

/** Returns who holds the node, until when, and why. The annotation may lack the name of the holder if a person wrote it by hand. */
function holdText(named: string, { by = 'somebody', reason, until }: Hold): string {
  const end = until === undefined ? `until refit unhold ${named}` : `until ${until}`;
  return `by ${by} ${end}${reason === undefined ? '' : `: ${reason}`}`;
}

/** Returns the end of the hold. Throws REFIT_USAGE if it is no time, or not in the future. */
function endOf({ until, for: lengthMs }: HoldFlags, now: number): string | undefined {
  if (lengthMs !== undefined) return rfc3339(now + lengthMs);
  if (until === undefined) return undefined;
  const isForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)$/.test(until);
  const time = Date.parse(until);
  if (!isForm || Number.isNaN(time))
    throw new RefitError(
      'REFIT_USAGE',
      `--until is ${JSON.stringify(until)}: write a time in RFC 3339, such as ${rfc3339(now + 7_200_000)}`,
    );
  if (time > now) return rfc3339(time);
  throw new RefitError('REFIT_USAGE', `--until is ${until}, which has passed: write a later time`);
}

const HEADS = {
  node: 'node',
  controlnode: 'controlnode',
  machine: 'machine',
  capi: 'machine',
} as const;

/**
 * Resolves with the objects to annotate: the Node and the ControlNode with the name. For `machine/NAME` or `capi/NAME`, these
 * are the Nodes of the Machine.
 */
async function findHoldables(
  client: KubeClient,
  named: string,
  abort: AbortSignal,
): Promise<Holdable[]> {
  const { head, name } = headOf(named);
  return head === 'machine'
    ? nodesOfMachine((await listNodes(client, { abort })).items, name)
    : await objectsNamed(client, name, head, abort);
}

/** The command that does for a plan what each of the commands does for a node, and what comes of it. */
const FOR_PLANS = {
  hold: { command: 'pause', effect: 'keeps all its nodes from starting' },
  unhold: { command: 'resume', effect: 'lets its nodes start again' },
} as const;

/** Resolves with the error about a node that does not exist. The error says if a plan has the name. */
async function noHoldable(
  named: string,
  command: keyof typeof FOR_PLANS,
  flags: ControlFlags,
  parts: SessionParts,
): Promise<RefitError> {
  if (await isPlan(named, flags, parts)) {
    const instead = FOR_PLANS[command];
    const message = `${named} is a plan, and refit ${command} takes the name of a node`;
    const hint = `refit ${instead.command} ${named} ${instead.effect}`;
    return new RefitError('REFIT_CONTROL', message, { hint });
  }
  const { head, name } = headOf(named);
  const what = head === 'machine' ? `Node of a Machine ${name}` : `Node or ControlNode ${name}`;
  return new RefitError('REFIT_CONTROL', `there is no ${what}`, {
    hint: 'see the names with `refit status -o wide`, or without a plan with `kubectl get nodes`',
  });
}

/** Resolves with true if a plan has the name; with false also if the user may not read plans. */
async function isPlan(named: string, flags: ControlFlags, parts: SessionParts): Promise<boolean> {
  const session = { ...parts, onDenied: () => undefined };
  return await inSession(flags, session, 'refit-control', async ({ loaded }) => {
    const found = plansIn(loaded).some(({ dialect, plan: { metadata } }) =>
      isShownAs({ ...metadata, dialect: dialect.name, kind: dialect.plans.kind }, named),
    );
    return await Promise.resolve(found);
  }).catch(() => false);
}

/**
 * Splits a name such as `capi/NAME` into the part before the first slash and the rest. Throws REFIT_USAGE if the first
 * part is unknown.
 */
function headOf(named: string) {
  const [first = '', ...rest] = named.split('/');
  const known = Object.entries(HEADS).find(([word]) => word === first.toLowerCase());
  const name = rest.length === 0 ? first : rest.join('/');
  const head = known?.[1];
  const isName = name !== '' && (head === 'machine' || !name.includes('/'));
  if (isName && (rest.length === 0 || known !== undefined))
    return { head: rest.length === 0 ? undefined : head, name };
  throw new RefitError(
    'REFIT_USAGE',
    `${JSON.stringify(named)} is not a node: write NODE, node/NODE, controlnode/NAME or machine/NAME`,
    { hint: '`refit pause` and `refit resume` take the name of a plan' },
  );
}

function nodesOfMachine(all: readonly Node[], name: string): Holdable[] {
  // A kubelet can claim the name of any Machine for its Node, so all Nodes that claim this Machine are held.
  return all
    .filter((node) => namesOf(node).slice(1).includes(name))
    .map((object) => ({ resource: nodes, object }));
}

async function objectsNamed(
  client: KubeClient,
  name: string,
  head: 'node' | 'controlnode' | undefined,
  abort: AbortSignal,
): Promise<Holdable[]> {
  const kinds: readonly Resource[] = [
    ...(head === 'controlnode' ? [] : [nodes]),
    ...(head === 'node' ? [] : [controlNodes]),
  ];
  const found = kinds.map(async (resource) => {
    const object = await ifFound(client.get(resource, name, { abort }));
    return object === undefined ? [] : [{ resource, object }];
  });
  return (await Promise.all(found)).flat();
}

async function annotate(
  client: KubeClient,
  { resource, object }: Holdable,
  value: string | null,
  { dryRun }: ControlFlags,
  abort: AbortSignal,
): Promise<void> {
  if (dryRun === 'client') return;
  const patch = { metadata: { annotations: { [HOLD_ANNOTATION]: value } } };
  const options = { type: 'merge', dryRun: dryRun === 'server', abort } as const;
  await client.patch(resource, object.metadata.name, patch, options);
}

function write({ write }: SessionParts['output'], lines: readonly string[]): void {
  write(lines.map((line) => `${printable(line)}\n`).join(''));
}
