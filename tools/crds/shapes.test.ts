/**
 * Tests that our autopilot schemas equal the schemas of the original and are not stricter, and that they accept the
 * objects of real clusters.
 */
import { expect, test } from 'vitest';
import {
  canonicalSpec,
  recordedObjects,
  recordedShapes,
  widenedSpec,
} from '../../test/support/recordings.ts';
import { definitionOf } from './definition.ts';
import { CUSTOM_KINDS } from './registry.ts';

const definitions = new Map(CUSTOM_KINDS.map(definitionOf).map((crd) => [crd.metadata.name, crd]));

test.each(recordedShapes())('$name has the shape that real clusters have', ({ name, spec }) => {
  expect(canonicalSpec({ ...definitions.get(name)?.spec })).toEqual(widenedSpec(spec));
});

test('only Plans are wider than in real clusters', () => {
  const wider = recordedShapes().filter(
    ({ spec }) => JSON.stringify(widenedSpec(spec)) !== JSON.stringify(canonicalSpec(spec)),
  );
  expect(wider.map(({ name }) => name)).toEqual(['plans.autopilot.k0sproject.io']);
});

test('the comparison sees a field that became required, a new bound and a member that is gone', () => {
  const spec = { ...recordedShapes().find(({ name }) => name.startsWith('plans.'))?.spec };
  const text = JSON.stringify(spec);
  const broken = [
    text.replace('"required":["url"]', '"required":["sha256","url"]'),
    text.replace('"default":1,"type":"integer"', '"default":1,"minimum":1,"type":"integer"'),
    text.replace('"forceupdate":{"type":"boolean"},', ''),
  ];
  for (const other of broken) {
    expect(other).not.toBe(text);
    expect(canonicalSpec(JSON.parse(other) as Record<string, unknown>)).not.toEqual(
      canonicalSpec(spec),
    );
  }
});

test.each(recordedObjects())('a recorded $kind is accepted and not changed', (object) => {
  const kind = CUSTOM_KINDS.find(({ resource }) => resource.kind === object.kind);
  const { apiVersion: _v, kind: _k, metadata: _m, ...members } = object;
  expect(kind?.schema.parse(members)).toEqual(members);
});

test('there are recordings of every kind that has any', () => {
  expect(recordedObjects().map(({ kind }) => kind)).toEqual(['ControlNode', 'Plan']);
});
