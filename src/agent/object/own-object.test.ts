/** Tests that the newest state is used: the state from the watch, unless our own write or a fresh read is newer. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import type { KubeClient, WatchEvent } from '../../kube/client.ts';
import { type KubeObject, nodes } from '../../kube/resources.ts';
import { StatusError, TransportError } from '../../kube/status-error.ts';
import type { Clock } from '../../util/clock.ts';
import { systemClock } from '../../util/clock.ts';
import { silentLogger } from '../../util/log.ts';
import { type OwnObject, ownObject } from './own-object.ts';

let stop: AbortController;
beforeEach(() => {
  stop = new AbortController();
});
afterEach(() => stop.abort());

const at = (resourceVersion: string, uid = 'u'): KubeObject => ({
  metadata: { name: 'worker1', uid, resourceVersion, annotations: { at: resourceVersion } },
});

/** Returns a client whose first list is `first`, and whose watch sends the events that the test pushes. */
function scripted(first: KubeObject[]): {
  client: KubeClient;
  push: (event: WatchEvent<KubeObject>) => void;
} {
  const queue: WatchEvent<KubeObject>[] = [];
  let wake = (): void => undefined;
  async function* watch(): AsyncGenerator<WatchEvent<KubeObject>> {
    for (;;) {
      for (const event of queue.splice(0)) yield event;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }
  const list = { metadata: { resourceVersion: '10' }, items: first };
  const client = { list: () => Promise.resolve(list), listAll: () => Promise.resolve(list), watch };
  const initial = first.map((object): WatchEvent<KubeObject> => ({ type: 'ADDED', object }));
  const end = {
    metadata: {
      name: '',
      resourceVersion: '10',
      annotations: { 'k8s.io/initial-events-end': 'true' },
    },
  };
  queue.push(...initial, { type: 'BOOKMARK', object: end });
  const push = (event: WatchEvent<KubeObject>): void => {
    queue.push(event);
    wake();
  };
  return { client: client as unknown as KubeClient, push };
}

function follow(client: KubeClient, clock: Clock = systemClock): OwnObject {
  const object = ownObject({
    client,
    resource: nodes,
    name: 'worker1',
    clock,
    random: () => 0,
    log: silentLogger,
  });
  void object.follow(stop.signal);
  return object;
}

const shows = async (object: OwnObject, resourceVersion: string | undefined): Promise<void> =>
  await vi.waitFor(() => {
    expect(object.isKnown).toBe(true);
    expect(object.newest?.metadata.resourceVersion).toBe(resourceVersion);
  }, 60_000);

test('an object follows its watch, and tells its listeners', async () => {
  const { client, push } = scripted([at('5')]);
  const object = follow(client);
  expect(object.isKnown).toBe(false);
  await shows(object, '5');
  const before = object.version;
  const told = vi.fn();
  object.onChange(told);
  push({ type: 'MODIFIED', object: at('11') });
  await shows(object, '11');
  expect(told).toHaveBeenCalledTimes(1);
  expect(object.version).toBe(before + 1);
  push({ type: 'DELETED', object: at('12') });
  await shows(object, undefined);
  push({ type: 'ADDED', object: at('13', 'v') });
  await shows(object, '13');
});

test('an object that does not exist is known not to', async () => {
  const object = follow(scripted([]).client);
  await shows(object, undefined);
});

test('the agent keeps asking an API server that is away for hours, and then sees its object', async () => {
  const clock = new FakeClock();
  const { client } = scripted([at('5')]);
  const inner = { ...client };
  const watch: KubeClient['watch'] = (...request) => inner.watch(...request);
  const away = { asked: 0, isOver: false };
  const object = follow(
    Object.assign(client, {
      watch: (...request: Parameters<KubeClient['watch']>) => {
        away.asked++;
        if (!away.isOver) throw new TransportError('refused');
        return watch(...request);
      },
    }),
    clock,
  );
  await clock.advance(2 * 60 * 60 * 1000);
  expect(away.asked).toBeGreaterThan(120);
  expect(object.isKnown).toBe(false);
  away.isOver = true;
  await clock.advance(10_000);
  await shows(object, '5');
});

test('the echo of an own write, and what came before it, says nothing', async () => {
  const { client, push } = scripted([at('5')]);
  const object = follow(Object.assign(client, { replace: () => Promise.resolve(at('20')) }));
  await shows(object, '5');
  await object.write(at('5'));
  expect(object.newest).toEqual(at('20'));
  push({ type: 'MODIFIED', object: at('19') });
  push({ type: 'MODIFIED', object: at('20') });
  push({ type: 'MODIFIED', object: at('21') });
  await shows(object, '21');
});

test('the answer to an own write says nothing once the watch has shown what others wrote after it', async () => {
  const { client, push } = scripted([at('5')]);
  const answer = Promise.withResolvers<KubeObject>();
  const object = follow(Object.assign(client, { replace: async () => await answer.promise }));
  await shows(object, '5');
  const written = object.write(at('5'));
  push({ type: 'MODIFIED', object: at('20') });
  push({ type: 'MODIFIED', object: at('21') });
  await shows(object, '21');
  answer.resolve(at('20'));
  await written;
  await shows(object, '21');
});

test('the answer to a write or an old read says nothing once the watch has shown that the object is gone', async () => {
  const { client, push } = scripted([at('5')]);
  const answer = Promise.withResolvers<KubeObject>();
  const answers = {
    replace: async () => await answer.promise,
    get: async () => await answer.promise,
  };
  const object = follow(Object.assign(client, answers));
  await shows(object, '5');
  const written = object.write(at('5'));
  const read = object.refresh();
  push({ type: 'DELETED', object: at('21') });
  await shows(object, undefined);
  answer.resolve(at('20'));
  await Promise.all([written, read]);
  await shows(object, undefined);
});

test('after a while lower versions of an object are believed again, because the cluster came from a backup', async () => {
  let elapsed = 0;
  const { client, push } = scripted([at('5')]);
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + elapsed };
  const object = follow(
    Object.assign(client, { replace: () => Promise.resolve(at('2000')) }),
    clock,
  );
  await shows(object, '5');
  await object.write(at('5'));
  elapsed = 61_000;
  push({ type: 'MODIFIED', object: at('19') });
  await shows(object, '19');
});

test('a fresh read of an object tells whether it exists', async () => {
  const get = vi
    .fn()
    .mockResolvedValueOnce(at('30'))
    .mockRejectedValueOnce(new StatusError({ kind: 'Status', code: 404 }));
  const object = follow(Object.assign(scripted([at('5')]).client, { get }));
  await shows(object, '5');
  await object.refresh();
  await shows(object, '30');
  await object.refresh();
  await shows(object, undefined);
});

test('a read of an object that fails is an error and changes nothing', async () => {
  const get = vi.fn().mockRejectedValue(new StatusError({ kind: 'Status', code: 500 }));
  const object = follow(Object.assign(scripted([at('5')]).client, { get }));
  await shows(object, '5');
  await expect(object.refresh()).rejects.toThrow('500');
  await shows(object, '5');
});
