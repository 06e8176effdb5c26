/** Computes the figures of `refit ready`, and the measured values of which they are made. */
import { disagrees } from '../../test/support/ready/room-trial.ts';
import { type Findings, formatNumber } from '../figures.ts';
import { HEALTHY, NODES, type ReadyRun, ROOMS } from './measure.ts';

export function readyFindings({
  missed,
  planted,
  falseBlockers,
  trials,
  large,
}: ReadyRun): Findings {
  const unknown = trials.filter(({ fit }) => fit.kind === 'unknown').length;
  const disagreeing = trials.filter(disagrees);
  const details = [
    { title: 'planted faults that were not found', rows: missed.map((each) => [each]) },
    { title: 'blockers in healthy clusters', rows: falseBlockers.map((each) => [each]) },
    {
      title: 'pods about which the scheduler disagrees',
      rows: disagreeing.map(({ pod, node, fit, said }) => [
        `${pod} of ${node}: ${fit.kind}, ${said}`,
      ]),
    },
  ];
  return {
    figures: [
      {
        key: 'ready.plantedFound',
        value: planted - missed.length,
        unit: 'faults',
        goal: { bound: 'least', limit: 40 },
        madeOf: `of ${planted} planted ones, each found with its object`,
      },
      {
        key: 'ready.falseBlockers',
        value: falseBlockers.length,
        unit: 'blockers',
        goal: { bound: 'most', limit: 0 },
        madeOf: `in ${HEALTHY} healthy clusters made at random`,
      },
      {
        key: 'ready.roomWrong',
        value: disagreeing.length,
        unit: 'pods',
        goal: { bound: 'most', limit: 0 },
        madeOf: `of ${trials.length} pods in ${ROOMS} clusters, each tried by the real scheduler`,
      },
      {
        key: 'ready.roomUnknown',
        value: trials.length === 0 ? 1 : unknown / trials.length,
        unit: 'share',
        goal: { bound: 'most', limit: 0.1 },
        madeOf: `${unknown} of the same ${trials.length} pods`,
      },
      {
        key: 'ready.secondsAt1000Nodes',
        value: large.seconds,
        unit: 's',
        goal: { bound: 'most', limit: 20 },
        madeOf: `${formatNumber(large.seconds)} s for ${NODES} nodes with 10,000 pods; ${large.writes.length} writes`,
      },
      {
        key: 'ready.rssMiB',
        value: large.rssMiB,
        unit: 'MiB',
        goal: { bound: 'most', limit: 300 },
        madeOf: 'the largest resident memory in the same run',
      },
    ],
    details: details
      .filter(({ rows }) => rows.length > 0)
      .map((each) => ({ ...each, header: ['WHAT'] })),
  };
}
