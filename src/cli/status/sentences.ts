/** Owns the sentences about targets: one for each while they are few, one for all at the same point where they are many. */

import type { Wait } from '../../engine/model/decided.ts';
import { RUNS_AGAIN } from '../../engine/model/reasons.ts';
import { age, listed } from '../phrases.ts';
import { isMoving } from './stage-lines.ts';
import type { PlanView, TargetView } from './view.ts';

/** More than this of a kind are told together, so that a screen holds everything. */
const FEW = 8;

/** Why it failed; what the waits say already is not said twice. */
export function failureLines({ stages, reason, waits }: PlanView): string[] {
  const failed = stages.flatMap(({ targets }) => targets).filter(({ phase }) => phase === 'failed');
  const each = failed.filter(({ name }) => !reason?.startsWith(`${name} `)).map(failureOf);
  // The node may say more by now than was recorded of it.
  const all = reason === undefined || each.some((line) => line.startsWith(reason)) ? each : [reason, ...each];
  const news = all.filter((line) => !waits.some((wait) => wait.reason.message.includes(line)));
  const rest = news.length - FEW;
  return rest > 0 ? [...news.slice(0, FEW), `and ${rest} more, see refit status -o wide`] : news;
}

function failureOf({ name, failure, step, rolledBack, gone }: TargetView): string {
  if (gone === true) return `${name} is gone: there is no such node`;
  const why =
    failure === undefined ? `${name} gave up${step === undefined ? '' : ` at ${step}`}` : `${name}: ${failure}`;
  return rolledBack === true ? `${why} (${RUNS_AGAIN})` : why;
}

/** What is in flight, where it is, and since when. */
export function movingLines({ stages, waits }: PlanView, now: number): string[] {
  const holding = new Map(waits.map((wait) => [wait.target, wait]));
  const moving = stages
    .flatMap(({ targets }) => targets)
    .filter(isMoving)
    .map((target) => ({ ...target, wait: holding.get(target.name) }));
  if (moving.length <= FEW) return moving.map(({ wait, ...target }) => movingLine(target, wait, now));
  return groups(moving, ({ wait, ...target }) => placeOfMany(target, wait))
    .map(([place, members]) => ({ place, count: members.length, longest: earliest(members) }))
    .toSorted((a, b) => Date.parse(a.longest.since) - Date.parse(b.longest.since))
    .map(({ place, count, longest: { name, since } }) => `${count} ${place} (longest: ${name} for ${age(since, now)})`);
}

function movingLine(target: TargetView, wait: Wait | undefined, now: number): string {
  const time = `for ${age(target.since, now)}`;
  if (wait === undefined || !isHeld(target, wait)) return `${target.name} ${placeOfOne(target)} (${time})`;
  const place = heldPlaceOf(target);
  return `${target.name} ${place} ${wait.reason.message} (${wait.gate}, ${time})`;
}

function heldPlaceOf({ phase, step = phase }: TargetView): string {
  if (phase === 'verifying') return 'reports success, but';
  return phase === 'working' ? `is at ${step}, and` : 'cannot be signalled:';
}

function placeOfOne({ phase, step = phase, drains }: TargetView): string {
  if (phase === 'intended') return 'is about to be signalled';
  if (phase === 'signalled') return 'is signalled, and its agent has not answered yet';
  if (phase === 'verifying') return 'reports success';
  return drains === 'node' ? `is at ${step}, which it does itself` : `is at ${step}`;
}

/** Where many are, in words that fit each of them. */
function placeOfMany(target: TargetView, wait: Wait | undefined): string {
  const { phase, step = phase } = target;
  const gate = wait !== undefined && isHeld(target, wait) ? `, held by ${wait.gate}` : '';
  if (phase === 'intended') return `about to be signalled${gate}`;
  if (phase === 'signalled') return 'signalled, without an answer yet';
  return phase === 'verifying' ? `reporting success${gate}` : `at ${step}${gate}`;
}

/** Without a gate the wait names the phase itself. */
function isHeld({ phase }: TargetView, { gate }: Wait): boolean {
  return gate !== phase;
}

/** What keeps others from starting, and since when. */
export function waitLines({ stages, waits }: PlanView, now: number): string[] {
  const moving = new Set(stages.flatMap(({ targets }) => targets.filter(isMoving).map(({ name }) => name)));
  const held = waits.filter(({ target }) => target === undefined || !moving.has(target));
  return groups(held, ({ target, gate, reason }) => (target === undefined ? reason.message : gate)).flatMap(
    ([gate, members]) => {
      if (members.length <= FEW) return members.map((wait) => waitLine(wait, now));
      const first = earliest(members);
      const names = listed(
        members.flatMap(({ target }) => target ?? []),
        FEW,
      );
      return [`${members.length} wait (${gate}, the longest for ${age(first.since, now)}): ${names}`];
    },
  );
}

function waitLine({ target, gate, reason, since }: Wait, now: number): string {
  const where = target === undefined ? '' : `${gate}, `;
  return `${reason.message} (${where}for ${age(since, now)})`;
}

function groups<T>(members: readonly T[], keyOf: (member: T) => string): [string, [T, ...T[]]][] {
  const found = new Map<string, [T, ...T[]]>();
  for (const member of members) {
    const group = found.get(keyOf(member));
    if (group) group.push(member);
    else found.set(keyOf(member), [member]);
  }
  return [...found];
}

function earliest<T extends { readonly since: string }>([first, ...rest]: readonly [T, ...T[]]): T {
  return rest.reduce((a, b) => (Date.parse(b.since) < Date.parse(a.since) ? b : a), first);
}
