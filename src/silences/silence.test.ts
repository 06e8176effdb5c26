/**
 * Tests which silence a Node needs, which silence of Alertmanager belongs to the Node, and when this silence is
 * renewed.
 */
import { expect, test } from 'vitest';
import {
  type AlertMatcher,
  filtersOf,
  nextLookMs,
  ownAmong,
  renewalOf,
  type SilenceRule,
  serverOf,
  wantedFor,
} from './silence.ts';

const NOW = Date.UTC(2026, 0, 1);
const NODES: AlertMatcher = { name: 'node', value: '{node}', isRegex: false };
const RULE: SilenceRule = { name: 'nodes', url: 'http://am', matchers: [NODES], lastsMs: 300_000 };
const WANTED = wantedFor(RULE, { plan: 'toy/ns/plan', uid: 'uid-1' }, 'w1');

function at(minutes: number): string {
  return new Date(NOW + minutes * 60_000).toISOString();
}

function inAlertmanager(changes: object = {}): object {
  return {
    id: 's1',
    status: { state: 'active' },
    matchers: [{ name: 'node', value: 'w1', isRegex: false, isEqual: true }],
    startsAt: at(-10),
    endsAt: at(1),
    createdBy: 'refit',
    comment: WANTED.comment,
    ...changes,
  };
}

test('matchers get the name of the node, which no character of it can widen', () => {
  const port: AlertMatcher = { name: 'instance', value: '{node}:[0-9]+', isRegex: true };
  const rule = { ...RULE, matchers: [NODES, port] };
  const wanted = wantedFor(rule, { plan: 'toy/ns/plan', uid: 'uid-1' }, 'w1.example.org');
  expect(wanted.matchers.map(({ value }) => value)).toEqual([
    'w1.example.org',
    String.raw`w1\.example\.org:[0-9]+`,
  ]);
  expect(filtersOf(wanted)).toEqual([
    'node="w1.example.org"',
    String.raw`instance=~"w1\\.example\\.org:[0-9]+"`,
  ]);
});

test.each<[string, object, boolean]>([
  ['the one that a former leader made', {}, true],
  ['one that waits for its start', { status: { state: 'pending' } }, true],
  ['one of an old server that knows no isEqual', { matchers: WANTED.matchers }, true],
  ['one that has ended', { status: { state: 'expired' } }, false],
  ['one of a person', { createdBy: 'ann' }, false],
  ['one for another node', { comment: WANTED.comment.replace('w1', 'w2') }, false],
  [
    'one of the same plan in another cluster',
    { comment: WANTED.comment.replace('1)', '2)') },
    false,
  ],
  [
    'one that matches everything else',
    { matchers: [{ name: 'node', value: 'w1', isRegex: false, isEqual: false }] },
    false,
  ],
  [
    'one with one more matcher',
    { matchers: [...WANTED.matchers, { name: 'severity', value: 'info', isRegex: false }] },
    false,
  ],
  ['one with other matchers', { matchers: [{ name: 'node', value: 'w9', isRegex: false }] }, false],
  ['one whose matcher is no object', { matchers: ['node=w1'] }, false],
  ['one without an id', { id: 7 }, false],
  ['one without a start', { startsAt: 7 }, false],
  ['one without an end', { endsAt: null }, false],
  ['one of an old server that knows no state', { status: 'active' }, true],
])('%s: the silence of Refit is found', (_what, changes, isOwn) => {
  expect(ownAmong([null, inAlertmanager(changes)], WANTED)).toHaveLength(isOwn ? 1 : 0);
});

test('without a silence, one is made that ends soon', () => {
  expect(renewalOf(WANTED, [], NOW)).toEqual({
    matchers: [{ name: 'node', value: 'w1', isRegex: false, isEqual: true }],
    startsAt: at(0),
    endsAt: at(5),
    createdBy: 'refit',
    comment: 'Refit upgrades node w1: plan toy/ns/plan (uid-1), silence nodes',
  });
});

test.each<[string, number, boolean]>([
  ['ends in a minute', 1, true],
  ['has more than two thirds of its time', 4, false],
  ['has exactly two thirds of its time', 10 / 3, false],
  ['has all of its time', 5, false],
  ['lasts longer than it should', 60, true],
])('a silence that %s', (_what, minutes, isRenewed) => {
  const found = ownAmong([inAlertmanager({ endsAt: at(minutes) })], WANTED);
  const { matchers, startsAt } = inAlertmanager() as { matchers: object[]; startsAt: string };
  const renewed = { id: 's1', matchers, startsAt, endsAt: at(5) };
  expect(renewalOf(WANTED, found, NOW)).toEqual(
    isRenewed ? { ...renewed, createdBy: 'refit', comment: WANTED.comment } : undefined,
  );
});

test('the comment of a silence calls a roll-back a roll-back', () => {
  const plan = { plan: 'toy/ns/plan', uid: 'uid-1' };
  const comments = [false, true].map(
    (rollsBack) => wantedFor(RULE, { ...plan, rollsBack }, 'w1').comment,
  );
  expect(comments).toEqual([
    'Refit upgrades node w1: plan toy/ns/plan (uid-1), silence nodes',
    'Refit rolls node w1 back: plan toy/ns/plan (uid-1), silence nodes',
  ]);
});

test('of two silences, the one that ends last counts', () => {
  const found = ownAmong([inAlertmanager(), inAlertmanager({ id: 's2', endsAt: at(4) })], WANTED);
  expect(renewalOf(WANTED, found, NOW)).toBeUndefined();
});

test('a silence with the same matchers in another order is found, and one with a matcher twice is not', () => {
  const severity: AlertMatcher = { name: 'severity', value: 'info', isRegex: false };
  const wanted = wantedFor(
    { ...RULE, matchers: [NODES, severity] },
    { plan: 'toy/ns/plan', uid: 'uid-1' },
    'w1',
  );
  const own = (matchers: readonly AlertMatcher[]) =>
    ownAmong([inAlertmanager({ matchers })], wanted);
  expect(own(wanted.matchers.toReversed())).toHaveLength(1);
  expect(own([wanted.matchers[0] ?? NODES, wanted.matchers[0] ?? NODES])).toEqual([]);
});

test.each([
  ['http://am.example:9093/path', 'am.example:9093'],
  ['no address', ''],
])('the server of %s is named %j', (url, server) => {
  expect(serverOf({ url })).toBe(server);
});

test('a silence is looked at three times in its duration', () => {
  expect(nextLookMs(RULE)).toBe(100_000);
});
