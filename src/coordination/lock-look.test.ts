/** Tests that read-only commands learn which tools of a policy are not installed. */
import { expect, test } from 'vitest';
import { MemoryApi, refusal } from '../../test/support/builders/memory-api.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { T0 } from '../../test/support/clock/times.ts';
import { lookAtLocks } from './lock-look.ts';

const { signal } = new AbortController();

async function missingIn(api: MemoryApi) {
  const { known, unseen } = await lookAtLocks(
    { client: api.client, clock: new FakeClock(T0) },
    'autopilot',
    ['ClusterAutoscaler', 'Karpenter', 'Kured', 'GPUOperator'],
    signal,
  );
  expect(unseen).toEqual([]);
  return known.flatMap(({ tool, notFound }) => (notFound === undefined ? [] : [tool]));
}

test('commands name each tool of a policy that is not installed, and only those', async () => {
  const api = new MemoryApi();
  expect(await missingIn(api)).toEqual(['Kured']);
  api.answerRaw('/apis/karpenter.sh', 404);
  api.answerRaw('/apis/nvidia.com', 404);
  expect(await missingIn(api)).toEqual(['Kured', 'Karpenter', 'GPUOperator']);
});

test('commands call no tool missing if the API server refuses to say which kinds it serves', async () => {
  const api = new MemoryApi();
  for (const path of ['get /apis/karpenter.sh', 'get /apis/nvidia.com'])
    api.before(path, () => {
      throw refusal(403, 'Forbidden');
    });
  expect(await missingIn(api)).toEqual(['Kured']);
});
