/** Tests that the path of an object leads to this object only, whatever its name is. */
import { expect, test } from 'vitest';
import { nodes, pathOf, pods } from './resources.ts';

test.each([
  ['a/b', '/api/v1/nodes/a%2Fb'],
  ['..%2f', '/api/v1/nodes/..%252f'],
  ['w1.example.com', '/api/v1/nodes/w1.example.com'],
])('the name %j is one segment of the path', (name, path) => {
  expect(pathOf(nodes, { name })).toBe(path);
});

test.each(['', '.', '..'])(
  'the name %j has no path, because it would lead to another object or to all objects',
  (name) => {
    expect(() => pathOf(nodes, { name })).toThrow(`no object can have the name "${name}"`);
    expect(() => pathOf(pods, { namespace: name, name: 'p' })).toThrow('no object can have');
  },
);

test('without a name, the path is the one of all objects', () => {
  expect(pathOf(pods)).toBe('/api/v1/pods');
  expect(pathOf(pods, { namespace: 'n' })).toBe('/api/v1/namespaces/n/pods');
});
