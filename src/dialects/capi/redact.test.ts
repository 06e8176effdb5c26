/** Shows that nothing of a captured body that opens a door stands in a log. */
import { expect, test } from 'vitest';
import { captured } from '../../../test/capi/captured.ts';
import type { Json } from '../../util/json.ts';
import { redacted } from './hook-service.ts';

test.each<[string, Json, Json]>([
  [
    'a bootstrap token',
    { bootstrapToken: { token: 'a.b', apiServerEndpoint: 'c' } },
    { bootstrapToken: { token: '(redacted)', apiServerEndpoint: 'c' } },
  ],
  [
    'the content of files',
    { files: [{ path: '/a', content: 'x' }] },
    { files: [{ path: '/a', content: '(redacted)' }] },
  ],
  ['data of secrets', { dataSecretName: 's', data: 'x' }, { dataSecretName: '(redacted)', data: '(redacted)' }],
  [
    'everything else stays',
    { spec: { version: 'v1', replicas: 3, list: [null, true] } },
    { spec: { version: 'v1', replicas: 3, list: [null, true] } },
  ],
])('%s', (_name, body, wanted) => {
  expect(redacted(body)).toEqual(wanted);
});

test('the body of a worker that joined', () => {
  const text = JSON.stringify(redacted(captured('updatemachine-worker-joined').request as unknown as Json));
  expect(text).not.toContain('REDACTED.REDACTED');
  expect(text).not.toContain('"content":"two"');
  expect(text).toContain('"version":"v1.35.1"');
});
