/**
 * Tests that Go modules that are built together require the same versions of libraries, so that Go compiles each
 * library only once.
 */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ROOT } from './tree.ts';

/** Returns the version of each library by its path. A `replace` takes precedence over the required version. */
function librariesIn(text: string): Map<string, string> {
  const required = text.matchAll(/^(?:require)?\s+(\S+\.\S+\/\S+) (v\S+)/gm);
  const replaced = text.matchAll(/^(?:replace)?\s+(\S+) => \S+ (v\S+)/gm);
  return new Map([...required, ...replaced].map(([, path = '', version = '']) => [path, version]));
}

/** Returns the libraries that both modules use in different versions. */
function differing(first: string, second: string): string[] {
  const own = librariesIn(first);
  const other = librariesIn(second);
  return [...own]
    .filter(([path, version]) => (other.get(path) ?? version) !== version)
    .map(([path]) => path);
}

const textOf = (module: string): string => readFileSync(`${ROOT}tools/${module}/go.mod`, 'utf8');

test('kwok is compiled with the libraries of the API server', () => {
  const shared = [...librariesIn(textOf('kwok')).keys()].filter((path) =>
    librariesIn(textOf('kube')).has(path),
  );
  expect(shared.length).toBeGreaterThan(50);
  expect(differing(textOf('kwok'), textOf('kube'))).toEqual([]);
});

test('a library of another version: found, unless it is replaced', () => {
  const other = 'require (\n\texample.com/a v1.0.0\n\texample.com/b v1.0.0 // indirect\n)\n';
  const own = 'require (\n\texample.com/a v2.0.0\n\texample.com/b v2.0.0\n)\n';
  expect(differing(own, other)).toEqual(['example.com/a', 'example.com/b']);
  expect(differing(`${own}replace (\n\texample.com/b => example.com/b v1.0.0\n)\n`, other)).toEqual(
    ['example.com/a'],
  );
});
