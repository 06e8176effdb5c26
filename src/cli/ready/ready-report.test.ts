/** Tests how the reports of `refit ready` and of `refit preview` read the cluster. */
import { expect, test } from 'vitest';
import { sendJson, startStubServer, whenReady } from '../../../test/faults/stub-server.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import { createClient } from '../../kube/transport/http-client.ts';
import { readyReporter } from './ready-report.ts';

test('the reports for several versions list each kind only once', async () => {
  const listed: string[] = [];
  await using server = await startStubServer(
    whenReady(({ url }, response) => {
      const { pathname, searchParams } = new URL(url, 'http://stub');
      if (searchParams.has('limit')) listed.push(pathname);
      if (pathname === '/version') sendJson(response, 200, { gitVersion: 'v1.36.3' });
      else sendJson(response, 200, { metadata: {}, items: [] });
    }),
  );
  using client = createClient(server.config);
  const reportOn = readyReporter({
    client,
    config: server.config,
    policies: { list: () => [] },
    dialects: [],
    clock: new FakeClock(T0),
    abort: new AbortController().signal,
  });
  const reports = await Promise.all(['v1.36.4', 'v1.37.0'].map(reportOn));
  expect(reports.map(({ to }) => to)).toEqual(['v1.36.4', 'v1.37.0']);
  expect(listed).toContain('/api/v1/pods');
  expect(listed).toEqual([...new Set(listed)]);
});
