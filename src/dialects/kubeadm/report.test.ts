/** Owns the table of cordons: whose they are, and who undoes them. */
import { expect, test } from 'vitest';
import type { Node } from '../../kube/types.ts';
import { cordoned, reportOn, uncordoned } from './report.ts';

const OWNER = 'upgrade.refit.dev/kubeadm-cordoned';
const node = (unschedulable?: boolean, owner?: string): Node => ({
  metadata: { name: 'w1', resourceVersion: '7', annotations: { kept: 'yes', ...(owner && { [OWNER]: owner }) } },
  spec: { ...(unschedulable && { unschedulable }) },
});

test.each<[string, Node, Node | undefined, Node | undefined]>([
  ['an open node is cordoned', node(), node(true, 'mine'), undefined],
  ['one that was found cordoned stays as it is', node(true), undefined, undefined],
  ['our own cordon is undone', node(true, 'mine'), undefined, node()],
  ['that of a campaign that failed is taken over', node(true, 'old'), node(true, 'mine'), undefined],
])('%s', (_name, found, worked, left) => {
  expect({ worked: cordoned(found, 'mine'), left: uncordoned(found, 'mine') }).toEqual({ worked, left });
});

test.each(['', '{', '[]', '{"attempt":1}'])('a report that cannot be read counts as none: %j', (text) => {
  expect(reportOn({ metadata: { name: 'w1', annotations: { 'upgrade.refit.dev/kubeadm': text } } })).toBeUndefined();
});
