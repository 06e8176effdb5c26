/**
 * Sets and removes the annotations that tell other tools not to disrupt a Node. A second annotation names the plan that
 * set the first one. So Refit always recognizes its own annotation, and never removes the annotation of somebody else.
 */
import { annotated, type Node, withoutAnnotations } from '../kube/resources.ts';
import { onceForEach } from '../util/memo.ts';
import { ownMember } from '../util/own-member.ts';
import type { NodeMark, ToolName } from './tool.ts';
import { TOOLS } from './tools.ts';

/** The state of the mark for one tool on a Node. */
export interface MarkState {
  readonly tool: ToolName;
  /** True if the Node has the annotation of the tool. Its value does not matter, and anybody may have set it. */
  readonly isSet: boolean;
  /** The claim of the plan that set the annotation; undefined if no plan has set it. */
  readonly owner: string | undefined;
}

const MARKS = TOOLS.flatMap(({ name, mark }) => (mark ? [{ tool: name, mark }] : []));

/** Returns the state of the mark for every tool that has one. */
export const marksOn = onceForEach((node: Node): readonly MarkState[] =>
  MARKS.map(({ tool, mark }) => ({ tool, ...stateOf(node, mark) })),
);

function stateOf({ metadata: { annotations } }: Node, mark: NodeMark): Omit<MarkState, 'tool'> {
  return {
    isSet: ownMember(annotations, mark.key) !== undefined,
    owner: ownMember(annotations, mark.ownerKey),
  };
}

/**
 * Returns the Node with the marks for these tools. A mark that Refit has already set gets the new owner. A mark that
 * somebody else has set does not change.
 */
export function withMarks(node: Node, owner: string, tools: readonly ToolName[]): Node {
  return MARKS.filter(({ tool }) => tools.includes(tool)).reduce((before, { mark }) => {
    const { isSet, owner: former } = stateOf(before, mark);
    if (isSet && former === undefined) return before;
    const own = { [mark.ownerKey]: owner };
    return annotated(before, isSet ? own : { ...own, [mark.key]: mark.value });
  }, node);
}

/**
 * Returns the Node without the marks of `owner`. If somebody else has changed the value of a mark meanwhile, the value
 * stays.
 */
export function withoutMarks(node: Node, owner: string): Node {
  const { annotations } = node.metadata;
  const keys = MARKS.flatMap(({ mark }) => {
    if (stateOf(node, mark).owner !== owner) return [];
    const isAsSet = ownMember(annotations, mark.key) === mark.value;
    return isAsSet ? [mark.key, mark.ownerKey] : [mark.ownerKey];
  });
  return keys.length === 0 ? node : withoutAnnotations(node, ...keys);
}
