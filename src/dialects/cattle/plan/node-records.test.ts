/**
 * Tests the records of attempts and upgrades on Nodes: what they say, that invalid records count as absent, and that
 * they do not become many.
 */
import { describe, expect, test } from 'vitest';
import { buildCattlePlan } from '../../../../test/support/builders/cattle-plans.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import { HOUR, later, MINUTE, T0 } from '../../../../test/support/clock/times.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import { annotated, type Node } from '../../../kube/resources.ts';
import {
  attemptOn,
  upgradeOn,
  versionBeforeOn,
  withAttempt,
  withoutAttempt,
  withoutOldRecords,
  withUpgrade,
} from './node-records.ts';

const ATTEMPT = 'system-upgrade.attempt.refit.upgrade.cattle.io/p';
const UPGRADE = 'system-upgrade.upgraded.refit.upgrade.cattle.io/p';
const plan = buildCattlePlan('p');
const other = buildCattlePlan('other');

function nodeAt(kubeletVersion: string, uid = 'node-uid'): Node {
  const node = buildNode('a');
  return {
    ...node,
    metadata: { ...node.metadata, uid },
    status: { nodeInfo: { kubeletVersion } },
  };
}
const OLD = nodeAt('v1.35.1+k3s1');
const intended = (since: string) => ({ key: 'a/a', name: 'a', state: 'intended', since }) as const;
const begun = (node: Node, since = later(0), isBegun = false, of = plan): Node =>
  withAttempt(node, of, intended(since), { hash: 'h', version: 'v1.36.3-k3s1', isBegun });
const ended = (node: Node, at = later(HOUR), of = plan): Node =>
  withUpgrade(node, of, { hash: 'h', version: 'v1.36.3-k3s1', ended: at, began: undefined });

describe('the record of an attempt', () => {
  test('says since when and from which version the Plan upgrades the node to this hash', () => {
    expect(attemptOn(begun(OLD), plan, 'h')).toMatchObject({
      since: later(0),
      from: 'v1.35.1+k3s1',
    });
  });

  test('is not written again while the attempt stays the same', () => {
    const node = begun(OLD);
    expect(begun(node)).toBe(node);
  });

  test('keeps the version before the first attempt when the node is tried again', () => {
    const node = { ...begun(OLD), status: { nodeInfo: { kubeletVersion: 'v1.36.3+k3s1' } } };
    expect(attemptOn(begun(node, later(MINUTE)), plan, 'h')).toMatchObject({
      since: later(MINUTE),
      from: 'v1.35.1+k3s1',
    });
  });

  test('names no earlier version if a Job may have installed the version already', () => {
    const node = begun(nodeAt('v1.36.3+k3s1'), later(0), true);
    expect(attemptOn(node, plan, 'h')?.from).toBeUndefined();
  });

  test('of each Plan is separate', () => {
    const node = begun(begun(OLD), later(MINUTE), false, other);
    expect([attemptOn(node, plan, 'h')?.since, attemptOn(node, other, 'h')?.since]).toEqual([
      later(0),
      later(MINUTE),
    ]);
  });
});

describe('the record of an upgrade', () => {
  test('takes the place of the record of its attempt', () => {
    const node = ended(begun(OLD));
    expect(Object.keys(node.metadata.annotations ?? {})).toEqual([UPGRADE]);
    expect(upgradeOn(node, plan, 'h', T0 + HOUR)).toMatchObject({
      version: 'v1.36.3-k3s1',
      from: 'v1.35.1+k3s1',
      begun: later(0),
      ended: later(HOUR),
    });
    expect(versionBeforeOn(node, plan, 'h')).toBe('v1.35.1+k3s1');
  });

  test('does not count if it ends in the future, because it would delay the next wave', () => {
    const node = ended(begun(OLD), later(HOUR));
    expect(upgradeOn(node, plan, 'h', T0)).toBeUndefined();
  });
});

describe('a record does not count', () => {
  const both = ended(begun(OLD));
  const valid = begun(both);
  const reads = (node: Node, of = plan, hash = 'h') => [
    attemptOn(node, of, hash),
    upgradeOn(node, of, hash, T0 + 2 * HOUR),
  ];
  const anew = { ...plan, metadata: { ...plan.metadata, uid: 'another' } };

  test('for another hash, a later Plan with the same name, or a later Node with the same name', () => {
    expect(reads(valid)).not.toContain(undefined);
    const replaced = { ...valid, metadata: { ...valid.metadata, uid: 'another' } };
    for (const found of [reads(valid, plan, 'h2'), reads(valid, anew), reads(replaced)])
      expect(found).toEqual([undefined, undefined]);
  });

  const subject = { plan: 'system-upgrade/p-uid', node: 'node-uid', hash: 'h' };
  const good = { ...subject, since: later(0), ended: later(0), version: 'v1' };

  test('with one of these values, although it is otherwise valid', () => {
    const text = JSON.stringify(good);
    expect(reads(annotated(OLD, { [ATTEMPT]: text, [UPGRADE]: text }))).not.toContain(undefined);
  });

  test.each<[string, string]>([
    ['is empty', ''],
    ['is no JSON', '{'],
    ['is null', 'null'],
    ['is a list', '[]'],
    ['has another time format', JSON.stringify({ ...good, since: '2026', ended: '2026' })],
    ['has no time', JSON.stringify({ ...good, since: '', ended: '' })],
    ['has a number as its time', JSON.stringify({ ...good, since: 1, ended: 1 })],
    ['has a long version', JSON.stringify({ ...good, from: 'v'.repeat(200) })],
    ['is long', JSON.stringify({ ...good, more: 'x'.repeat(2000) })],
    ['names a prototype', '{"__proto__":{"plan":"x"}}'],
  ])('if it %s, because a kubelet can write it', (_what, text) => {
    expect(reads(annotated(OLD, { [ATTEMPT]: text, [UPGRADE]: text }))).toEqual([
      undefined,
      undefined,
    ]);
  });
});

test('the records of deleted Plans of the namespace are removed with the next end, and all others stay', () => {
  const away = { ...other, metadata: { ...other.metadata, name: 'away', namespace: 'elsewhere' } };
  const kept = { ...other, metadata: { ...other.metadata, name: 'kept' } };
  const node = [other, away, kept].reduce((all, of) => ended(all, later(0), of), ended(OLD));
  const left = withoutOldRecords(node, plan, buildWorldOf([cattlePlans, [plan, kept]]));
  expect(Object.keys(left.metadata.annotations ?? {}).toSorted()).toEqual([
    'elsewhere.upgraded.refit.upgrade.cattle.io/away',
    'system-upgrade.upgraded.refit.upgrade.cattle.io/kept',
    UPGRADE,
  ]);
  expect(withoutOldRecords(left, plan, buildWorldOf([cattlePlans, [plan, kept]]))).toBe(left);
});

describe('two Plans of one name in two namespaces', () => {
  const away = { ...plan, metadata: { ...plan.metadata, namespace: 'elsewhere', uid: 'away-uid' } };

  test('each have their own records on a node', () => {
    const node = ended(begun(begun(OLD), later(MINUTE), false, away), later(HOUR), away);
    expect(attemptOn(node, plan, 'h')?.since).toBe(later(0));
    expect(upgradeOn(node, plan, 'h')).toBeUndefined();
    expect(upgradeOn(node, away, 'h')?.begun).toBe(later(MINUTE));
    expect(attemptOn(node, away, 'h')).toBeUndefined();
  });

  test('the records of an earlier build, without a namespace in their keys, count for their own Plan', () => {
    const subject = { plan: 'system-upgrade/p-uid', node: 'node-uid', hash: 'h' };
    const text = JSON.stringify({ ...subject, since: later(0), ended: later(0), version: 'v1' });
    const former = ['attempt', 'upgraded'].map((kind) => `${kind}.refit.upgrade.cattle.io/p`);
    const node = annotated(OLD, Object.fromEntries(former.map((key) => [key, text])));
    expect([attemptOn(node, plan, 'h')?.since, upgradeOn(node, plan, 'h')?.version]).toEqual([
      later(0),
      'v1',
    ]);
    expect([attemptOn(node, away, 'h'), upgradeOn(node, away, 'h')]).toEqual([
      undefined,
      undefined,
    ]);
    expect(attemptOn(withoutAttempt(node, plan), plan, 'h')).toBeUndefined();
    expect(withoutAttempt(node, away)).toBe(node);
  });

  test('the records of an earlier build are replaced when the Plan ends an upgrade', () => {
    const subject = { plan: 'system-upgrade/p-uid', node: 'node-uid', hash: 'g' };
    const text = JSON.stringify({ ...subject, since: later(0), ended: later(0), version: 'v1' });
    const former = ['attempt', 'upgraded'].map((kind) => `${kind}.refit.upgrade.cattle.io/p`);
    const node = annotated(OLD, Object.fromEntries(former.map((key) => [key, text])));
    const keysAfter = (of: typeof plan) =>
      Object.keys(
        ended(begun(node, later(0), false, of), later(HOUR), of).metadata.annotations ?? {},
      );
    expect(keysAfter(plan)).toEqual([UPGRADE]);
    expect(keysAfter(away)).toEqual(expect.arrayContaining(former));
  });
});
