import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Date;
import java.util.TimeZone;
import org.quartz.CronExpression;

/**
 * Times reads lines of expression, time zone, seconds since 1970 and a count,
 * parted by tabs, and adds the times at which Quartz runs next, or "refused".
 *
 * <pre>
 * apt-get install libquartz2-java default-jdk
 * javac -cp /usr/share/java/quartz2.jar -d /tmp Times.java
 * cut -f 1-4 quartz.tsv | java -cp /usr/share/java/quartz2.jar:/usr/share/java/slf4j-api.jar:/tmp Times
 * </pre>
 */
public class Times {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split("\t");
            System.out.println(line + "\t" + times(parts[0], parts[1], Long.parseLong(parts[2]), Integer.parseInt(parts[3])));
        }
    }

    private static String times(String expression, String zone, long after, int count) {
        CronExpression cron;
        try {
            cron = new CronExpression(expression);
        } catch (Exception e) {
            return "refused";
        }
        cron.setTimeZone(TimeZone.getTimeZone(zone));
        StringBuilder times = new StringBuilder();
        Date time = new Date(after * 1000);
        for (int i = 0; i < count && time != null; i++) {
            time = cron.getTimeAfter(time);
            times.append(i == 0 ? "" : " ").append(time == null ? "never" : time.getTime() / 1000);
        }
        return times.toString();
    }
}
