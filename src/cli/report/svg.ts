/** Draws the nodes of a report as lanes over time, as one SVG without scripts. */
import { formatDuration } from '../../util/duration.ts';
import { ownMember } from '../../util/own-member.ts';
import { printable } from '../../util/printable.ts';
import type { NodeState } from '../dashboard/state.ts';
import { Markup } from './markup.ts';
import type { Report } from './report.ts';

const svg = Markup.tagOf(escaped);
const LANE = 22;
const LEFT = 300;
const RIGHT = 20;
const WIDTH = 1100;
const HEAD = 84;
const FOOT = 40;
/** The maximum number of letters in one line of the picture. */
const LONGEST_LINE = 150;
const LONGEST_TITLE = 100;
/**
 * The maximum number of letters for the name and the state of a node together. The next constant is the maximum number
 * of letters for the state alone.
 */
const MOST_LETTERS = 36;
const LONGEST_STATE = 16;
/** The maximum number of lanes in a picture. No program displays a picture with more lanes well. */
const MOST_LANES = 1000;

/** The colour and the letter of each step. The letters distinguish the steps for people who do not see the colours. */
const STEPS: Readonly<Record<string, { readonly colour: string; readonly letter: string }>> = {
  download: { colour: '#5b9bd5', letter: 'd' },
  drain: { colour: '#d98032', letter: 'D' },
  apply: { colour: '#3a8f76', letter: 'a' },
  restart: { colour: '#1f5f8b', letter: 'r' },
  uncordon: { colour: '#8a6d1f', letter: 'u' },
  verify: { colour: '#7a4a9e', letter: 'v' },
  'at work': { colour: '#4a5a70', letter: 'w' },
  wait: { colour: '#c5ccd6', letter: '' },
};
const OTHER_STEP = { colour: '#7a6fb0', letter: '' };
const SIGNS = { done: '●', moving: '◐', failed: '✗', skipped: '◌', pending: '○' } as const;

export function svgOf({ at, plan }: Report): string {
  const shown = plan.nodes.slice(0, MOST_LANES);
  const left = plan.nodes.length - shown.length;
  const height = HEAD + LANE * shown.length + FOOT;
  const { from, ms } = spanOf(plan.nodes);
  const title = `${plan.title}: ${plan.phase} ${plan.done}/${plan.total}${plan.versions === '' ? '' : `, to ${plan.versions}`}`;
  const scale = (time: number): number => LEFT + ((WIDTH - LEFT - RIGHT) * (time - from)) / ms;
  const axis =
    plan.nodes.length === 0
      ? []
      : [
          label(LEFT, HEAD - 8, '0 s', 'soft'),
          label(WIDTH - RIGHT, HEAD - 8, formatDuration(ms), 'soft end'),
        ];
  const foot = left > 0 ? `${left} more nodes are not drawn. ` : '';
  const drawn = [
    svg`<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${title}">`,
    svg`<style>text{font:13px system-ui,sans-serif;fill:#1b2028}.head{font-size:17px;font-weight:bold}.soft{fill:#5a6472}.end{text-anchor:end}.letter{font-size:11px;fill:#fff}</style>`,
    svg`<rect width="100%" height="100%" fill="#fff"/>`,
    label(20, 30, title, 'head', LONGEST_TITLE),
    label(20, 52, plan.why.flatMap(({ lines }) => lines)[0] ?? '', 'soft', LONGEST_LINE),
    ...axis,
    ...shown.flatMap((node, place) => laneOf(node, HEAD + LANE * place, scale)),
    label(20, height - 14, `${foot}${legend()}. Read at ${at}.`, 'soft'),
    svg`</svg>`,
  ];
  return `${Markup.lines(drawn).toString()}\n`;
}

function laneOf(node: NodeState, top: number, scale: (time: number) => number): Markup[] {
  const { name, phase, state, steps } = node;
  const baseline = top + 15;
  const said = cut(state, LONGEST_STATE);
  return [
    label(20, baseline, `${SIGNS[phase]} ${name}`, '', MOST_LETTERS - said.length),
    label(LEFT - 10, baseline, state, 'soft end', LONGEST_STATE),
    ...steps.flatMap(({ word, from, to }) => {
      const { colour, letter } = ownMember(STEPS, word) ?? OTHER_STEP;
      const x = scale(from);
      const width = Math.max(1, scale(to) - x);
      const bar = svg`<rect x="${x.toFixed(1)}" y="${top + 4}" width="${width.toFixed(1)}" height="${LANE - 8}" fill="${colour}"><title>${word}: ${formatDuration(to - from)}</title></rect>`;
      const isWide = letter !== '' && width > 12;
      return isWide ? [bar, label(x + 3, baseline, letter, 'letter')] : [bar];
    }),
  ];
}

function legend(): string {
  return Object.entries(STEPS)
    .map(([word, { letter }]) => (letter === '' ? `${word} is grey` : `${letter} = ${word}`))
    .join(', ');
}

function spanOf(nodes: readonly NodeState[]): { readonly from: number; readonly ms: number } {
  const steps = nodes.flatMap((node) => node.steps);
  const from = steps.reduce((least, step) => Math.min(least, step.from), Number.POSITIVE_INFINITY);
  const to = steps.reduce((most, step) => Math.max(most, step.to), 0);
  return { from, ms: Math.max(1, to - from) };
}

/** Returns a text element with at most `most` letters. If the text is cut, the title of the element has the whole text. */
function label(
  x: number,
  y: number,
  text: string,
  name = '',
  most = Number.POSITIVE_INFINITY,
): Markup {
  const style = name === '' ? '' : svg` class="${name}"`;
  const shown = cut(text, most);
  const whole = shown === text ? '' : svg`<title>${text}</title>`;
  return svg`<text x="${x.toFixed(1)}" y="${y}"${style}>${whole}${shown}</text>`;
}

function cut(text: string, most: number): string {
  const letters = Array.from(text);
  return letters.length <= most ? text : `${letters.slice(0, most - 1).join('')}…`;
}

function escaped(text: string): string {
  return printable(text)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
