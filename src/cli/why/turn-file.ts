/**
 * Writes what `refit` saw of the plans into a file, and shows such a file again without a cluster. With the file, a person
 * who has no access to the cluster can find out why Refit decided as it did, also with another release.
 */

import { createReadStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { commandsAt } from '../../engine/explain/inspect.ts';
import {
  fromJson,
  type StoredSnapshot,
  snapshotFrom,
  storedSnapshot,
  toJson,
} from '../../engine/snapshot/turn-json.ts';
import { textIn } from '../../util/bounded-file.ts';
import { rfc3339 } from '../../util/clock.ts';
import { messageOf, RefitError } from '../../util/errors.ts';
import { isRecord } from '../../util/json.ts';
import { ownMember } from '../../util/own-member.ts';
import { printable } from '../../util/printable.ts';
import type { SessionDialect } from '../contract/session-dialect.ts';
import type { ConnectionFlags } from '../options.ts';
import { mediumOf, type Output } from '../output.ts';
import type { ShownStatus } from '../status/json-form.ts';
import { askLeader, type LeaderView } from '../status/load.ts';
import { inspectAll, type SeenPlan, seenIn, shownPlan } from '../status/observe.ts';
import type { PlanFilter } from '../status/plan-names.ts';
import { render } from '../status/render.ts';
import { inSession, type SessionParts } from '../status/status-session.ts';
import { titleOf } from '../status/text.ts';
import { type TextsOf, textsIn } from '../status/texts-of.ts';
import { VERSION } from '../version.ts';
import { whyLines } from './why-command.ts';
import { withoutSecrets } from './without-secrets.ts';

/** What Refit says about the turn, one text for each line. */
interface Told {
  readonly status: readonly string[];
  readonly why: readonly string[];
  /** The commands of a leader, each with the title of its plan. */
  readonly commands: readonly string[];
}

/** What `refit` saw of the plans. */
interface Seen {
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  readonly leader: LeaderView;
  readonly plans: readonly SeenPlan[];
}

interface StoredPlan extends Omit<SeenPlan, 'snapshot'> {
  readonly snapshot: StoredSnapshot;
}

interface TurnFile extends Omit<Seen, 'plans'> {
  readonly kind: typeof KIND;
  /** The release of Refit that wrote the file. */
  readonly release: string;
  readonly plans: readonly StoredPlan[];
  readonly told: Told;
}

const KIND = 'RefitTurn';
/** A plan with thousands of nodes needs some kilobytes for each of them. */
const MOST_BYTES = 256 * 1024 * 1024;
/** The text of a dump is read by people, so each member has its own line. */
const SPACE = 1;
const PIPE = { hasColours: false, size: () => ({ columns: Infinity, rows: Infinity }) };

/** Writes what the session sees of the plans into the file. */
export async function dumpTurn(
  path: string,
  flags: ConnectionFlags & PlanFilter,
  parts: SessionParts,
): Promise<void> {
  await inSession(flags, parts, 'refit-why', async (session) => {
    const now = parts.clock.now();
    const { inspections } = await inspectAll(session.loaded, session.viewParts, now);
    const leader = await askLeader(session, now);
    const seen = { now, leader, plans: inspections.map(seenIn) };
    await writeTurn(path, seen, session.viewParts.textsOf);
    parts.output.write(`${path} is written: refit replay ${path} shows it\n`);
  });
}

/** Writes the file. Receivers of messages, and what `withoutSecrets` hides, are left out. */
export async function writeTurn(path: string, seen: Seen, textsOf: TextsOf): Promise<void> {
  const plans = seen.plans.map(({ policy: { notify: _notify, ...policy }, ...plan }) =>
    withoutSecrets({ ...plan, snapshot: storedSnapshot(plan.snapshot), policy }),
  );
  const turn = { kind: KIND, release: VERSION, ...seen, plans } as const;
  const file: TurnFile = { ...turn, told: toldOf(seenOf(turn), textsOf) };
  try {
    await writeFile(path, `${toJson(file, SPACE)}\n`, { mode: 0o600 });
  } catch (error) {
    throw new RefitError('REFIT_FILE', `cannot write ${path}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/** Shows what this release says about the turn in the file, and each line that differs from what the file says. */
export async function replayTurn(
  path: string,
  output: Output,
  modules: readonly SessionDialect[],
): Promise<void> {
  const turn = await readTurn(path);
  const told = toldAnew(turn, path, textsIn(modules));
  const lines = [
    `What Refit ${turn.release} saw at ${rfc3339(turn.now)}, as Refit ${VERSION} explains it:`,
    ...titled('status', told.status),
    ...titled('why', told.why),
    ...titled('commands of a leader', told.commands.length === 0 ? ['none'] : told.commands),
    '',
    ...differences(turn, told),
  ];
  output.write(`${lines.map((line) => printable(line)).join('\n')}\n`);
}

function wrong(path: string, problem: string, cause?: unknown): RefitError {
  const hint = 'give a file that `refit why --dump FILE` wrote';
  return new RefitError('REFIT_FILE', `${path} ${problem}`, { hint, cause });
}

/** A release that has changed the snapshot may not understand the file of another release. */
function toldAnew(turn: TurnFile, path: string, textsOf: TextsOf): Told {
  try {
    return toldOf(seenOf(turn), textsOf);
  } catch (error) {
    const problem = `has a turn of Refit ${turn.release} that Refit ${VERSION} cannot read: ${messageOf(error)}`;
    throw wrong(path, problem, error);
  }
}

async function readTurn(path: string): Promise<TurnFile> {
  const file = createReadStream(path);
  const text = await textIn(file, MOST_BYTES, 'it is larger than 256 MiB').catch(
    (error: unknown) => {
      throw wrong(path, `cannot be read: ${messageOf(error)}`, error);
    },
  );
  let value: unknown;
  try {
    value = fromJson(text);
  } catch (error) {
    throw wrong(path, `is not JSON: ${messageOf(error)}`, error);
  }
  const told = isRecord(value) ? value['told'] : undefined;
  const isTurn = isRecord(value) && value['kind'] === KIND && Array.isArray(value['plans']);
  if (!isTurn || !isTold(told)) throw wrong(path, 'contains no turn of Refit');
  return value as TurnFile;
}

function isTold(value: unknown): value is Told {
  const parts = ['status', 'why', 'commands'];
  return isRecord(value) && parts.every((part) => Array.isArray(ownMember(value, part)));
}

function seenOf({ now, leader, plans }: Omit<TurnFile, 'told'>): Seen {
  const seen = plans.map((plan) => ({ ...plan, snapshot: snapshotFrom(plan.snapshot) }));
  return { now, leader, plans: seen };
}

function toldOf({ now, leader, plans }: Seen, textsOf: TextsOf): Told {
  const views = plans.map((plan) => shownPlan(plan, textsOf(plan.dialect), now));
  const status: ShownStatus = { leader, plans: views };
  const commands = plans.flatMap(({ snapshot, policy }, index) => {
    const view = views[index];
    const title = view === undefined ? '' : titleOf(view);
    return commandsAt(snapshot, policy, now).map((command) => `${title}: ${toJson(command)}`);
  });
  return {
    status: render(status, 'text', now, PIPE).trimEnd().split('\n'),
    why: whyLines({ ...status, hasOthers: plans.length > 1 }, undefined, now, mediumOf(PIPE)),
    commands,
  };
}

function titled(title: string, lines: readonly string[]): string[] {
  return ['', `# ${title}`, ...lines];
}

/** Returns the lines that only one of the two releases says. */
function differences({ release, told: before }: TurnFile, now: Told): string[] {
  const lines = (['status', 'why', 'commands'] as const).flatMap((part) => {
    const gone = missing(before[part], now[part]).map((line) => `- ${line}`);
    const come = missing(now[part], before[part]).map((line) => `+ ${line}`);
    return [...gone, ...come];
  });
  return lines.length === 0
    ? [`Refit ${release} said and decided the same.`]
    : [`Refit ${release} said or decided something else (-) than Refit ${VERSION} (+):`, ...lines];
}

function missing(lines: readonly string[], others: readonly string[]): string[] {
  const known = new Set(others);
  return lines.filter((line) => !known.has(line));
}
