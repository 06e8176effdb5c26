/** Tests that no decision uses a cache that is older than the last write of this process. */
import { describe, expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { type Node, nodes } from '../../kube/resources.ts';
import { freshWorld, OwnWrites, type View, viewsOf } from './world.ts';

const at = (resourceVersion: string, name = 'w1'): Node => buildNode(name, { resourceVersion });

function view(objects: readonly Node[], resourceVersion?: string): View<Node> {
  return {
    get: (name) => objects.find(({ metadata }) => metadata.name === name),
    list: () => [...objects],
    resourceVersion: () => resourceVersion,
  };
}

function latest(written: Node | undefined, seen: View<Node>): string | undefined {
  const ownWrites = new OwnWrites();
  if (written) ownWrites.remember(nodes, written);
  return ownWrites.latest(nodes, seen, 'w1')?.metadata.resourceVersion;
}

describe('the newest of', () => {
  test.each<[string, Node | undefined, View<Node>, string | undefined]>([
    ['a view without our writes', undefined, view([at('5')], '5'), '5'],
    ['neither', undefined, view([], '5'), undefined],
    ['an older view', at('7'), view([at('5')], '5'), '7'],
    ['an older view that went on otherwise', at('7'), view([at('5')], '9'), '7'],
    ['a view that has our write', at('7'), view([at('7')], '7'), '7'],
    ['a view with a later write of somebody else', at('7'), view([at('8')], '8'), '8'],
    ['versions of other lengths', at('10'), view([at('9')], '9'), '10'],
    [
      'versions beyond safe integers',
      at('9007199254740993'),
      view([at('9007199254740992')], '1'),
      '9007199254740993',
    ],
    ['an object that the view does not have yet', at('7'), view([], '6'), '7'],
    ['an object that was deleted after our write', at('7'), view([], '8'), undefined],
    ['a view that was never filled', at('7'), view([]), '7'],
  ])('%s', (_name, written, seen, version) => {
    expect(latest(written, seen)).toBe(version);
  });
});

test('once the view has caught up, it alone counts: an object deleted later stays deleted', () => {
  const ownWrites = new OwnWrites();
  ownWrites.remember(nodes, at('7'));
  expect(ownWrites.latest(nodes, view([at('8')], '8'), 'w1')?.metadata.resourceVersion).toBe('8');
  expect(ownWrites.latest(nodes, view([], '6'), 'w1')).toBeUndefined();
});

test('a cluster that was restored from a backup, with lower versions, is followed after a minute', async () => {
  const clock = new FakeClock();
  const ownWrites = new OwnWrites(clock);
  ownWrites.remember(nodes, at('2000'));
  const restored = view([at('900')], '950');
  const world = freshWorld(viewsOf([[nodes, restored]]), ownWrites);
  expect(world.get(nodes, 'w1')?.metadata.resourceVersion).toBe('2000');
  await clock.advance(60_001);
  expect(world.list(nodes).map(({ metadata }) => metadata.resourceVersion)).toEqual(['900']);
});

test('a view that has our write is used as it is', () => {
  const ownWrites = new OwnWrites();
  ownWrites.remember(nodes, at('7'));
  const seen = at('7');
  expect(ownWrites.latest(nodes, view([seen], '7'), 'w1')).toBe(seen);
});

test('writes are distinguished by name and kind', () => {
  const ownWrites = new OwnWrites();
  ownWrites.remember(nodes, at('7', 'w2'));
  ownWrites.remember({ ...nodes, plural: 'hosts' }, at('8', 'w1'));
  expect(ownWrites.latest(nodes, view([at('5')], '5'), 'w1')?.metadata.resourceVersion).toBe('5');
});

describe('the world that decisions use', () => {
  const ownWrites = new OwnWrites();
  ownWrites.remember(nodes, at('7', 'w1'));
  const hosts = { ...nodes, plural: 'hosts' };
  const views = viewsOf([
    [hosts, view([at('1', 'c1')], '6')],
    [nodes, view([at('5', 'w1'), at('6', 'w2')], '6')],
  ]);
  const world = freshWorld(views, ownWrites);

  test('shows our own writes, alone and in lists', () => {
    expect(world.get(nodes, 'w1')?.metadata.resourceVersion).toBe('7');
    expect(world.list(nodes).map(({ metadata }) => metadata.resourceVersion)).toEqual(['7', '6']);
  });

  test('shows what was created since the last event of the view', () => {
    ownWrites.remember(nodes, at('9', 'w3'));
    expect(world.list(nodes).map(({ metadata }) => metadata.name)).toEqual(['w1', 'w2', 'w3']);
  });

  test('throws for kinds that are not watched', () => {
    expect(() => world.list({ ...nodes, plural: 'unknowns' })).toThrow('unknowns are not watched');
  });

  test('keeps the kinds apart', () => {
    expect(world.get(hosts, 'w1')).toBeUndefined();
    expect(world.list(hosts).map(({ metadata }) => metadata.name)).toEqual(['c1']);
  });
});

test('a list is that of the view while it lacks nothing, so that what depends on it is computed once', () => {
  const ownWrites = new OwnWrites();
  const seen = [at('7'), at('3', 'w2')];
  const same = { ...view(seen, '7'), list: () => seen };
  expect(ownWrites.latestOfAll(nodes, same)).toBe(seen);
  ownWrites.remember(nodes, at('7'));
  expect(ownWrites.latestOfAll(nodes, same)).toBe(seen);
  ownWrites.remember(nodes, at('9'));
  ownWrites.remember(nodes, at('8', 'w3'));
  const versions = ownWrites
    .latestOfAll(nodes, same)
    .map(({ metadata }) => [metadata.name, metadata.resourceVersion]);
  expect(versions).toEqual([
    ['w1', '9'],
    ['w2', '3'],
    ['w3', '8'],
  ]);
});

test('a list with our own writes stays the same too, while the view stays and we write nothing', async () => {
  const clock = new FakeClock();
  const ownWrites = new OwnWrites(clock);
  const seen = [at('3', 'w2')];
  const same = { ...view(seen, '7'), list: () => seen };
  const later = { ...same, list: () => [at('4', 'w2')] };
  const named = (all: readonly Node[]) =>
    all.map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`);
  ownWrites.remember(nodes, at('8'));
  const first = ownWrites.latestOfAll(nodes, same);
  expect(ownWrites.latestOfAll(nodes, same)).toBe(first);
  expect(named(ownWrites.latestOfAll(nodes, later))).toEqual(['w2@4', 'w1@8']);
  expect(named(ownWrites.latestOfAll(nodes, same))).toEqual(['w2@3', 'w1@8']);
  ownWrites.remember(nodes, at('9'));
  expect(named(ownWrites.latestOfAll(nodes, same))).toEqual(['w2@3', 'w1@9']);
  await clock.advance(60_001);
  expect(ownWrites.latestOfAll(nodes, same)).toBe(seen);
});
