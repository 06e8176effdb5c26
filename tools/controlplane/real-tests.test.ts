/** Tests what the arguments of `npm run test:real` choose, and the error about a version that has no manifest. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { realTestsOf } from './real-tests.ts';
import { chosenRelease, RELEASES } from './releases.ts';

const TOOLS = join(import.meta.dirname, '..');

test('without the option, everything of the second tier runs, on the usual release', () => {
  const args = ['test/testenv/crds.test.ts', '-t', 'look-ahead'];
  expect(realTestsOf(args)).toEqual({
    projects: ['computed', 'programs', 'runs', 'conformance', 'testenv', 'rights'],
    others: args,
    environment: {},
  });
  expect(chosenRelease({}).kubernetes).toBe('v1.36.3');
  expect(chosenRelease({ REFIT_KUBERNETES: '' }).kubernetes).toBe('v1.36.3');
});

test.each([
  [['--kubernetes', 'v1.37', 'crds']],
  [['--kubernetes=v1.37', 'crds']],
  [['crds', '--kubernetes', 'v1.37']],
])('%j: the tests of the control plane run on v1.37', (args) => {
  const { projects, others, environment } = realTestsOf(args);
  expect([projects, others]).toEqual([['conformance', 'testenv'], ['crds']]);
  expect(environment).toEqual({ REFIT_KUBERNETES: 'v1.37', KUBEBUILDER_ASSETS: undefined });
  expect(chosenRelease(environment).kubernetes).toMatch(/^v1\.37\.\d+$/);
});

test.each([
  [['--kubernetes', 'v1.29'], 'v1.29'],
  [['--kubernetes=1.37'], '1.37'],
  [['--kubernetes', 'v1.37.2'], 'v1.37.2'],
  [['--kubernetes'], ''],
])('%j: the error says what would be right', (args, found) => {
  const right = [...RELEASES.keys()].join(', ');
  const message = `wants a minor version of Kubernetes that has a manifest below tools/ (${right}), found "${found}"`;
  const says = (field: string) => ({
    code: 'REFIT_USAGE',
    message: expect.stringContaining(`${field} ${message}`) as string,
  });
  expect(() => realTestsOf(args)).toThrow(expect.objectContaining(says('--kubernetes')) as Error);
  if (found !== '')
    expect(() => chosenRelease({ REFIT_KUBERNETES: found })).toThrow(
      expect.objectContaining(says('REFIT_KUBERNETES')) as Error,
    );
});

test('two versions of Kubernetes in one command are refused', () => {
  expect(() => realTestsOf(['--kubernetes', 'v1.30', '--kubernetes=v1.37'])).toThrow(
    '--kubernetes wants one minor version, found it more than once',
  );
});

test.each([...RELEASES])('%s: its manifests have the versions of the table', (_minor, release) => {
  const { kubernetes, etcd, modules } = release;
  const required = [
    [modules.kubernetes, `k8s.io/kubernetes ${kubernetes}`],
    [modules.kubernetes, `=> k8s.io/apiserver v0.${kubernetes.slice('v1.'.length)}`],
    [modules.etcd, `go.etcd.io/etcd/server/v3 ${etcd}`],
    [modules.etcdutl, `go.etcd.io/etcd/etcdutl/v3 ${etcd}`],
  ] as const;
  for (const [module, text] of required) {
    expect(readFileSync(join(TOOLS, module, 'go.mod'), 'utf8')).toContain(text);
    expect(existsSync(join(TOOLS, module, 'go.sum'))).toBe(true);
  }
});
