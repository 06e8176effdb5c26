/**
 * Tests that the facts of each supported minor version of Kubernetes are there, and that nobody has edited them, their
 * source or their generator without generating them again. It needs no Go. test/testenv/minor-facts.test.ts generates
 * the facts of the usual version again.
 */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  CLUSTER_API_GATES,
  EARLY_FLAGS,
  EARLY_GATES,
  EARLY_KUBEADM_GATES,
  ETCD_STEPS,
  REMOVAL_NOTES,
} from '../../src/versions/data/by-hand.ts';
import { factsOfMinor, NEWEST_KNOWN, OLDEST_KNOWN, WRITTEN } from '../../src/versions/facts.ts';
import { COMPONENTS, type Component, readFacts } from '../../src/versions/minor-facts.ts';
import { MODULES, moduleOf } from '../../tools/facts/minors.ts';
import { digestOf, pathOf } from '../../tools/facts/render.ts';
import { ROOT } from './tree.ts';

const minors = WRITTEN.map(({ minor }) => minor);

test('every minor version from the oldest to the newest one has facts and a Go module', () => {
  const all = Array.from(
    { length: NEWEST_KNOWN - OLDEST_KNOWN + 1 },
    (_each, index) => OLDEST_KNOWN + index,
  );
  expect(minors).toEqual(all);
  expect([...MODULES.keys()]).toEqual(all);
});

const textOf = (minor: number): string => readFileSync(`${ROOT}${pathOf(minor)}`, 'utf8');

test.each(WRITTEN)('the facts of 1.$minor are those that the generator wrote', (written) => {
  const { minor, digest, release } = written;
  const advice = `npm run generate -- minor 1.${minor}`;
  expect(digest, advice).toBe(digestOf(minor, textOf(minor)));
  expect(release, advice).toBe(moduleOf(minor).release);
});

test('an edited file with facts has another digest', () => {
  const text = textOf(NEWEST_KNOWN);
  const edited = text.replace(' AllAlpha ', ' ');
  expect(edited).not.toBe(text);
  expect(digestOf(NEWEST_KNOWN, edited)).not.toBe(digestOf(NEWEST_KNOWN, text));
});

test.each(WRITTEN)('the facts of 1.$minor have every component, and the usual gates', (written) => {
  const facts = readFacts(written);
  for (const component of COMPONENTS) {
    expect(facts.hasFlag(component, 'v')).toBe(true);
    expect(facts.hasFlag(component, 'feature-gates')).toBe(true);
    expect(facts.gateOf(component, 'AllAlpha')).toEqual({
      stage: 'ALPHA',
      default: false,
      locked: false,
    });
  }
  expect(facts.apis.length).toBeGreaterThan(50);
  expect(facts.serves('apps/v1', 'Deployment')).toBe(true);
  expect(facts.kubeadmFormats).toContain('v1beta4');
  expect(facts.supportsKernel('6.1.0')).toBe(true);
  expect(facts.supportsKernel('3.10.0')).toBe(false);
});

test('no early removal contradicts the sources of the oldest minor version', () => {
  const oldest = factsOfMinor(OLDEST_KNOWN);
  const flags = (Object.keys(EARLY_FLAGS) as Component[]).flatMap((component) =>
    (EARLY_FLAGS[component] ?? []).filter(({ name }) => oldest?.hasFlag(component, name) === true),
  );
  const gates = EARLY_GATES.filter(({ name }) =>
    COMPONENTS.some((component) => oldest?.gateOf(component, name) !== undefined),
  );
  const own = EARLY_KUBEADM_GATES.filter(({ name }) => oldest?.kubeadmGates.has(name) === true);
  expect([...flags, ...gates, ...own]).toEqual([]);
});

test('every note about a removal is about a setting that a known minor version removed', () => {
  const knows = ({ minor }: { readonly minor: number }, name: string): boolean => {
    const facts = factsOfMinor(minor);
    return (
      facts?.kubeadmGates.has(name) === true ||
      COMPONENTS.some(
        (each) => facts?.hasFlag(each, name) === true || facts?.gateOf(each, name) !== undefined,
      )
    );
  };
  const [first = { minor: 0 }] = WRITTEN;
  const last = WRITTEN.at(-1) ?? { minor: 0 };
  for (const { name } of REMOVAL_NOTES)
    expect([knows(first, name), knows(last, name)], name).toEqual([true, false]);
});

test('the gates that Cluster API sets are gates of kubeadm in these minor versions', () => {
  for (const { gate, sinceMinor, untilMinor } of CLUSTER_API_GATES)
    for (const minor of minors)
      expect(factsOfMinor(minor)?.kubeadmGates.has(gate), `${gate} in 1.${minor}`).toBe(
        minor >= sinceMinor && minor < untilMinor,
      );
});

test('every minor version of etcd that kubeadm goes to has a step', () => {
  const [first, ...others] = new Set(WRITTEN.map(({ etcd }) => Number(etcd.split('.')[1])));
  const steps = ETCD_STEPS.map(({ to }) => to);
  expect(first).toBeDefined();
  expect(others.toReversed()).toEqual(steps);
});

test('a flag is the same flag with dashes and with underscores', () => {
  // The libraries of the component write this flag with underscores, and Kubernetes 1.37 has removed it.
  for (const name of ['boot_id_file', 'boot-id-file']) {
    expect(factsOfMinor(36)?.hasFlag('kube-proxy', name)).toBe(true);
    expect(factsOfMinor(37)?.hasFlag('kube-proxy', name)).toBe(false);
  }
});
