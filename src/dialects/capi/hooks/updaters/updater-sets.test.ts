/** Proves the messages for an UpdaterSet that cannot be used. */
import { expect, test } from 'vitest';
import {
  buildUpdater,
  buildUpdaterSet,
} from '../../../../../test/support/builders/updater-sets.ts';
import type { Updater } from '../../../../api/refit/updater-set.ts';
import { setFor, setProblems } from './updater-sets.ts';

const NO_URL =
  'expected an https URL without user, query and fragment, such as https://updater.example.com';
const service = { namespace: 'updaters', name: 'files' };

test.each<[string, Updater[], string[]]>([
  [
    'one by URL, one by Service, and both of Refit',
    [
      buildUpdater('a'),
      { name: 'b', service, caBundle: buildUpdater('b').caBundle ?? '' },
      { name: 'configuration', nodeConfiguration: {} },
      { name: 'refit', refit: {} },
    ],
    [],
  ],
  [
    'nothing',
    [{ name: 'a' }],
    [
      'spec.updaters[0]: sets none of them, expected exactly one of refit, nodeConfiguration, url and service',
    ],
  ],
  [
    'two of them',
    [buildUpdater('a', { refit: {} })],
    [
      'spec.updaters[0]: sets refit and url, expected exactly one of refit, nodeConfiguration, url and service',
    ],
  ],
  [
    'plain http',
    [buildUpdater('a', { url: 'http://a.example.com' })],
    [`spec.updaters[0].url: is the text "http://a.example.com", ${NO_URL}`],
  ],
  [
    'a password in the URL',
    [buildUpdater('a', { url: 'https://me:secret@a.example.com' })],
    [`spec.updaters[0].url: is the text "https://***@a.example.com", ${NO_URL}`],
  ],
  [
    'no CA',
    [{ name: 'a', url: 'https://a.example.com' }],
    ['spec.updaters[0].caBundle: is missing, expected the CA of its certificate'],
  ],
  [
    'a CA that is none',
    [buildUpdater('a', { caBundle: 'aGFsbG8=' })],
    ['spec.updaters[0].caBundle: is not a certificate, expected base64 of PEM'],
  ],
  [
    'a folder elsewhere',
    [buildUpdater('a', { clientCertificate: '../certs' })],
    [expect.stringContaining('spec.updaters[0].clientCertificate: ') as string],
  ],
  [
    'the same name twice',
    [buildUpdater('a'), buildUpdater('a')],
    ['spec.updaters[1].name: a is used twice, expected a name that no other updater has'],
  ],
  [
    'Refit twice',
    [
      { name: 'a', refit: {} },
      { name: 'b', refit: {} },
    ],
    ['spec.updaters: 2 are refit, expected at most one'],
  ],
  [
    'a CA for the configuration of nodes',
    [{ name: 'a', nodeConfiguration: {}, caBundle: buildUpdater('b').caBundle ?? '' }],
    [
      'spec.updaters[0]: has caBundle, clientCertificate or handlers, which are only for updaters with url or service',
    ],
  ],
  [
    'a certificate for Refit',
    [{ name: 'a', refit: {}, clientCertificate: 'b' }],
    [
      'spec.updaters[0]: has caBundle, clientCertificate or handlers, which are only for updaters with url or service',
    ],
  ],
  [
    'an operator of a selector that is none',
    [{ name: 'a', refit: {}, selector: { matchExpressions: [{ key: 'k', operator: 'exists' }] } }],
    ['spec.updaters[0].selector: "exists" is not a valid label selector operator'],
  ],
])('%s', (_name, updaters, problems) => {
  expect(setProblems(buildUpdaterSet('s', updaters))).toEqual(problems);
});

test('a set whose selector cannot be read may be for any Machine, so nothing is guessed', () => {
  const selector = { matchExpressions: [{ key: 'k', operator: 'doesNotExist' }] };
  const set = buildUpdaterSet('s', [{ name: 'a', refit: {} }], { selector });
  const problem =
    'UpdaterSet s: spec.selector: "doesNotExist" is not a valid label selector operator';
  expect(() => setFor([set], {})).toThrow(problem);
});
