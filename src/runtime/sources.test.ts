/** Shows which keys a change puts into the queue. */
import { expect, test } from 'vitest';
import type { KubeObject } from '../kube/types.ts';
import type { Handler } from '../kube/watch/handler.ts';
import type { Informer } from '../kube/watch/informer.ts';
import {
  annotationsChanged,
  type EventSource,
  fromIndex,
  fromMapping,
  fromObject,
  fromOwner,
  generationChanged,
} from './sources.ts';

interface FakeInformer extends Informer {
  readonly handlers: Handler<KubeObject>[];
}

function fakeInformer(byIndex: Informer['byIndex'] = () => []): FakeInformer {
  const handlers: Handler<KubeObject>[] = [];
  const addHandler = (handler: Handler<KubeObject>): (() => void) => {
    handlers.push(handler);
    return () => void handlers.splice(handlers.indexOf(handler), 1);
  };
  return { handlers, addHandler, byIndex } as unknown as FakeInformer;
}

function listen(source: EventSource): [string, number | undefined][] {
  const keys: [string, number | undefined][] = [];
  source.start((key, priority) => keys.push([key, priority]));
  return keys;
}

const pod = (more: object = {}): KubeObject => ({ metadata: { name: 'p', namespace: 'ns', ...more } });

test("an object's own key, for each kind of change, until stopped", () => {
  const informer = fakeInformer();
  const keys: string[] = [];
  const stop = fromObject(informer, { priority: 3 }).start((key, priority) => keys.push(`${key} ${priority}`));
  const [handler] = informer.handlers;
  handler?.added?.(pod());
  handler?.updated?.(pod(), pod());
  handler?.deleted?.(pod());
  expect(keys).toEqual(['ns/p 3', 'ns/p 3', 'ns/p 3']);
  stop();
  expect(informer.handlers).toEqual([]);
});

test('of an update both states count, and no key twice', () => {
  const informer = fakeInformer();
  const keys = listen(fromMapping(informer, ({ metadata }) => [metadata.labels?.['to'] ?? '', 'both']));
  informer.handlers[0]?.updated?.(pod({ labels: { to: 'new' } }), pod({ labels: { to: 'old' } }));
  expect(keys.map(([key]) => key)).toEqual(['new', 'both', 'old']);
});

test('the owners of the kind asked for', () => {
  const informer = fakeInformer();
  const keys = listen(fromOwner(informer, 'Job'));
  const ownerReferences = ['Job', 'Node'].map((kind) => ({ apiVersion: 'v1', kind, name: `my-${kind}`, uid: 'u' }));
  informer.handlers[0]?.added?.(pod({ ownerReferences }));
  informer.handlers[0]?.added?.(pod());
  expect(keys.map(([key]) => key)).toEqual(['ns/my-Job']);
});

test('the objects that refer to it, by their index', () => {
  const informer = fakeInformer();
  const target = fakeInformer((index, value) => [{ metadata: { name: `${index}:${value}` } }]);
  const keys = listen(fromIndex(informer, target, 'byPod'));
  informer.handlers[0]?.added?.(pod());
  expect(keys.map(([key]) => key)).toEqual(['byPod:ns/p']);
});

const versions = (a: object, b: object): [KubeObject, KubeObject] => [pod(a), pod(b)];

test.each([
  ['a new generation', generationChanged, versions({ generation: 2 }, { generation: 1 }), true],
  ['the same generation', generationChanged, versions({ generation: 1, labels: { a: 'b' } }, { generation: 1 }), false],
  ['a new object', generationChanged, [pod()], true],
  ['an annotation', annotationsChanged('a'), versions({ annotations: { a: '2' } }, { annotations: { a: '1' } }), true],
  ['another annotation', annotationsChanged('a'), versions({ annotations: { b: '2' } }, {}), false],
  ['a new object, by annotations', annotationsChanged('a'), [pod()], true],
] as const)('%s: %#', (_name, when, [object, previous], expected) => {
  const informer = fakeInformer();
  const keys = listen(fromObject(informer, { when }));
  if (object && previous) informer.handlers[0]?.updated?.(object, previous);
  else if (object) informer.handlers[0]?.added?.(object);
  expect(keys.length > 0).toBe(expected);
});
