/** Tests which Jobs of a policy cause a warning because an administrator must list their namespace. */
import { expect, test } from 'vitest';
import { unlistedJobs } from './unlisted-jobs.ts';

const template = { spec: { containers: [] } };

test('a Job in the namespace of the manifests needs no warning, and each other Job of a hook or a check gets one', () => {
  const hookIn = (namespace: string) =>
    ({
      name: namespace,
      when: 'BeforeDrain',
      timeout: '1m',
      job: { namespace, template },
    }) as const;
  const health = { jobs: [{ name: 'smoke', namespace: 'tests', spec: { template } }] };
  const warnings = unlistedJobs({ hooks: [hookIn('refit-hooks'), hookIn('backup')], health });
  expect(warnings).toEqual([
    expect.stringMatching(
      /^spec\.hooks\[1\]\.job\.namespace: .* the namespace backup\. .*--job-namespaces/,
    ),
    expect.stringMatching(/^spec\.health\.jobs\[0\]\.namespace: .* the namespace tests\. /),
  ]);
  expect(unlistedJobs({})).toEqual([]);
});
