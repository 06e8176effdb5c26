/** Proves which manager has labelled a Node for an upgrade, and what F4 reports about labels of other tools. */
import { describe, expect, test } from 'vitest';
import type { Node } from '../../../kube/resources.ts';
import { describeFinding } from '../../../versions/findings.ts';
import { KUBEONE_LABEL, LABEL_OWNER, labelFindings, labelStateOf } from './kubeone-label.ts';

const TIME = '2026-11-26T21:04:05Z';

/** Returns a Node on which these field managers have written the label. */
function labelled(managers: readonly string[], annotations: Record<string, string> = {}): Node {
  const fieldsV1 = { 'f:metadata': { 'f:labels': { [`f:${KUBEONE_LABEL}`]: {} } } };
  const managedFields = [
    { manager: 'kubelet', time: TIME, fieldsV1: { 'f:metadata': { 'f:labels': {} } } },
    ...managers.map((manager) => ({ manager, time: TIME, fieldsV1 })),
  ];
  return {
    metadata: { name: 'cp1', labels: { [KUBEONE_LABEL]: '' }, annotations, managedFields },
  };
}

const OWNED = { [LABEL_OWNER]: 'me' };

describe('whose label a Node has', () => {
  test.each<[string, Node, ReturnType<typeof labelStateOf>]>([
    ['no label', { metadata: { name: 'cp1' } }, 'absent'],
    [
      'no label, with an annotation that was left',
      { metadata: { name: 'cp1', annotations: OWNED } },
      'absent',
    ],
    ['the label of KubeOne', labelled(['kubeone']), 'foreign'],
    ['the label of Refit', labelled(['refit-kubeadm'], OWNED), 'ours'],
    ['the label of Refit, without recorded managers', labelled([], OWNED), 'ours'],
    [
      'a label of KubeOne next to an annotation that was left',
      labelled(['kubeone'], OWNED),
      'foreign',
    ],
  ])('%s', (_name, node, wanted) => {
    expect(labelStateOf(node)).toBe(wanted);
  });
});

describe('F4', () => {
  const told = (node: Node, takesOver: boolean): string[] =>
    labelFindings([node], takesOver).map(
      (finding) => `${finding.severity} ${finding.rule} ${describeFinding(finding)}`,
    );

  test('names who wrote the label and when, and what lifts the refusal', () => {
    expect(told(labelled(['kubeone']), false)).toEqual([
      `hard F4 a KubeOne upgrade is in progress on cp1 (written by kubeone, last at ${TIME}); finish it, then remove the label ${KUBEONE_LABEL}; if that run will not continue, --force allows this`,
    ]);
  });

  test('with --force, Refit only warns about the label of a KubeOne upgrade, and names its writer', () => {
    expect(told(labelled(['kubeone']), true)).toEqual([
      `warn F4 --force takes over the label ${KUBEONE_LABEL} on cp1 (written by kubeone, last at ${TIME})`,
    ]);
  });

  test("says nothing about Refit's own label", () => {
    expect(told(labelled(['refit-kubeadm'], OWNED), false)).toEqual([]);
  });
});
