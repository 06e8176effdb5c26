/** Sends each new state to every open page. */
import type { ServerResponse } from 'node:http';
import { HEADERS } from './answers.ts';
import type { DashboardState } from './state.ts';

export interface Feed {
  /** The newest state as JSON; empty before the first state. */
  readonly last: string;
  /** How many pages are open. */
  readonly pages: number;
  /** Sends the state to every open page. */
  publish(state: DashboardState): void;
  /** Answers a request with the present state and then with each new state, each as an event. */
  subscribe(response: ServerResponse): void;
  /** Makes every open page load again, and ends its connection. */
  end(): void;
}

export function createFeed(): Feed {
  const pages = new Set<ServerResponse>();
  const behind = new Set<ServerResponse>();
  let last = '';
  return {
    get last() {
      return last;
    },
    get pages() {
      return pages.size;
    },
    publish(state) {
      last = JSON.stringify(state);
      for (const page of pages) {
        // If a page does not read, it is skipped. When it reads again, it gets only the newest state.
        if (page.writableNeedDrain) behind.add(page);
        else page.write(eventOf(last));
      }
    },
    subscribe(response) {
      response.writeHead(200, { ...HEADERS, 'content-type': 'text/event-stream' });
      pages.add(response);
      response.on('close', () => {
        pages.delete(response);
        behind.delete(response);
      });
      response.on('drain', () => void (behind.delete(response) && response.write(eventOf(last))));
      if (last === '') response.flushHeaders();
      else response.write(eventOf(last));
    },
    end() {
      last = '';
      for (const page of pages) page.end('event: end\ndata:\n\n');
    },
  };
}

function eventOf(state: string): string {
  return `data: ${state}\n\n`;
}
