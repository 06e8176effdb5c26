/** Tests which keys a change adds to the queue. */
import { expect, test } from 'vitest';
import type { KubeObject } from '../kube/resources.ts';
import type { Informer } from '../kube/watch/informer.ts';
import type { Handler } from '../kube/watch/store.ts';
import { type EventSource, fromMapping, fromObject, generationChanged } from './run-controller.ts';

interface FakeInformer extends Informer {
  readonly handlers: Handler<KubeObject>[];
}

function fakeInformer(): FakeInformer {
  const handlers: Handler<KubeObject>[] = [];
  const addHandler = (handler: Handler<KubeObject>): (() => void) => {
    handlers.push(handler);
    return () => void handlers.splice(handlers.indexOf(handler), 1);
  };
  return { handlers, addHandler } as unknown as FakeInformer;
}

function listen(source: EventSource): string[] {
  const keys: string[] = [];
  source.start((key) => keys.push(key));
  return keys;
}

const pod = (more: object = {}): KubeObject => ({
  metadata: { name: 'p', namespace: 'ns', ...more },
});

test("an object's own key, for each kind of change, until stopped", () => {
  const informer = fakeInformer();
  const keys: string[] = [];
  const stop = fromObject(informer).start((key) => keys.push(key));
  const [handler] = informer.handlers;
  handler?.added?.(pod());
  handler?.updated?.(pod(), pod());
  handler?.deleted?.(pod());
  expect(keys).toEqual(['ns/p', 'ns/p', 'ns/p']);
  stop();
  expect(informer.handlers).toEqual([]);
});

test('of an update both states count, and no key twice', () => {
  const informer = fakeInformer();
  const keys = listen(
    fromMapping(informer, ({ metadata }) => [metadata.labels?.['to'] ?? '', 'both']),
  );
  informer.handlers[0]?.updated?.(pod({ labels: { to: 'new' } }), pod({ labels: { to: 'old' } }));
  expect(keys).toEqual(['new', 'both', 'old']);
});

const versions = (a: object, b: object): [KubeObject, KubeObject] => [pod(a), pod(b)];

test.each([
  ['a new generation', generationChanged, versions({ generation: 2 }, { generation: 1 }), true],
  [
    'the same generation',
    generationChanged,
    versions({ generation: 1, labels: { a: 'b' } }, { generation: 1 }),
    false,
  ],
  ['a new object', generationChanged, [pod()], true],
] as const)('%s: %#', (_name, when, [object, previous], expected) => {
  const informer = fakeInformer();
  const keys = listen(fromObject(informer, when));
  if (object && previous) informer.handlers[0]?.updated?.(object, previous);
  else if (object) informer.handlers[0]?.added?.(object);
  expect(keys.length > 0).toBe(expected);
});
